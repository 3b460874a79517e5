"""The base of every endpoint that is called with an API key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView

from permissions.api.authentication import ApiRequest
from permissions.api.refusals import LengthRequired, RequestTooLarge, Unreadable
from permissions.models import ApiKey, Organization, User


class ApiView(APIView):
    """An endpoint: names the scope of each of its methods; knows who calls.

    ``max_body_bytes``: how large a body it reads; None means the installation's DATA_UPLOAD_MAX_MEMORY_SIZE.
    """

    request: ApiRequest
    required_scopes: ClassVar[Mapping[str, str]]
    max_body_bytes: ClassVar[int | None] = None
    # No OPTIONS: what an endpoint takes is said in the schema.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    @property
    def organization(self) -> Organization:
        return self.request.organization

    @property
    def owner(self) -> User:
        """The owner of the key that calls."""
        return self.request.user

    @property
    def key(self) -> ApiKey:
        return self.request.auth

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who calls, and may he; then whether the request can be read at all."""
        super().initial(request, *args, **kwargs)
        self._require_readable_size(request)
        _require_no_null(request)

    def _require_readable_size(self, request: Request) -> None:
        limit = self.max_body_bytes or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        length = str(request.META.get("CONTENT_LENGTH") or "")
        if length.isdecimal() and int(length[:20]) > limit:
            raise RequestTooLarge
        if not length and request.META.get("HTTP_TRANSFER_ENCODING"):
            raise LengthRequired


def _require_no_null(request: Request) -> None:
    """PostgreSQL takes no NUL in a text, so no look-up by one gets there."""
    if "\x00" in request.path:
        raise NotFound
    for name, values in request.query_params.lists():
        if any("\x00" in text for text in (name, *values)):
            detail = _("Null characters are not allowed.")
            raise Unreadable("null_characters_not_allowed", detail, name.replace("\x00", ""))
