"""The base of every endpoint of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from permissions.api import throttling
from permissions.api.authentication import ApiRequest
from permissions.api.callers import Caller
from permissions.api.refusals import LengthRequired, RequestTooLarge, Unreadable
from permissions.models import ApiKey, Organization, User


class ApiView(APIView):
    """An endpoint: names the scope of each of its methods; knows who calls.

    ``max_body_bytes``: how large a body it reads; None means the installation's DATA_UPLOAD_MAX_MEMORY_SIZE.
    """

    request: ApiRequest
    required_scopes: ClassVar[Mapping[str, str]]
    max_body_bytes: ClassVar[int | None] = None
    http_method_names = ["get", "head", "options", "post", "put", "patch", "delete"]

    @property
    def organization(self) -> Organization:
        return self.request.organization

    @property
    def owner(self) -> User:
        """The owner of the key that calls, or the signed-in person."""
        return self.request.user

    @property
    def caller(self) -> Caller:
        return self.request.auth

    @property
    def key(self) -> ApiKey | None:
        """The key that calls; None where a signed-in person does."""
        return self.request.auth.key

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:  # noqa: ARG002 - DRF's signature
        """204 with ``Allow``; what an endpoint takes is said in the schema."""
        return Response(status=status.HTTP_204_NO_CONTENT)

    def check_permissions(self, request: Request) -> None:
        """Counted before the scope is asked: a refusal costs, too, and each answer says how many are left."""
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Nothing: the request has been counted by now."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who calls, and may he; then whether the request can be read at all."""
        super().initial(request, *args, **kwargs)
        self._require_readable_size(request)
        _require_no_null(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """What every answer says: how many requests are left, and that nobody between us keeps a copy."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in throttling.headers_of(request).items():
            answer[name] = value
        answer.setdefault("Cache-Control", "no-store")
        return answer

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
