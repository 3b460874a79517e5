"""What happens to every request: it has an id, and a slash at its end changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from permissions.ids import new_id
from permissions.logs import request_id

HEADER = "X-Request-Id"
_FORM = re.compile(r"[A-Za-z0-9-]{8,64}")
_WITHOUT_SLASH = ("/api/", "/webhooks/")

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class RequestIdMiddleware:
    """Takes ``X-Request-Id`` where it has the right form, else makes one; on every answer and log line."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        name = given if _FORM.fullmatch(given) else new_id().hex
        # Not reset: the server's own lines about this answer follow it, and the next request sets its own.
        request_id.set(name)
        response = self.get_response(request)
        response[HEADER] = name
        return response


class TrailingSlashMiddleware:
    """Serves ``/api/…/`` as ``/api/…``. No redirect: a redirected POST loses its body."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(_WITHOUT_SLASH) and request.path_info.endswith("/"):
            request.path_info = request.path_info[:-1]
            request.path = request.path.removesuffix("/")
        return self.get_response(request)
