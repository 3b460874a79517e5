"""Lists: ``?cursor=&limit=`` → ``{"next", "previous", "results"}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework import exceptions, pagination
from rest_framework.request import Request
from rest_framework.views import APIView

from permissions.api.refusals import Unreadable

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


class CursorPagination(pagination.CursorPagination):
    """Newest first by id (a UUIDv7 is a time). Raises Unreadable: ``invalid_limit``, ``invalid_cursor``."""

    cursor_query_param = "cursor"
    page_size_query_param = "limit"
    page_size = DEFAULT_LIMIT
    max_page_size = MAX_LIMIT
    ordering = "-id"

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get("limit")
        if given is None:
            return DEFAULT_LIMIT
        if not (given.isascii() and given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= MAX_LIMIT):
            detail = _("The limit is a whole number from 1 to %(most)d.") % {"most": MAX_LIMIT}
            raise Unreadable("invalid_limit", detail, "limit")
        return int(given)

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (exceptions.NotFound, ValidationError, ValueError, TypeError):
            # A cursor that somebody wrote himself.
            raise Unreadable("invalid_cursor", _("This cursor is none of ours."), "cursor") from None
