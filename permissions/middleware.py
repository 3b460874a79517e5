"""What happens to every request: it has an id, a slash at its end changes nothing, and it sees one tenant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import resolve

from permissions import isolation
from permissions.admin_base import reach
from permissions.ids import new_id
from permissions.isolation import Scope, Sweep
from permissions.logs import request_id

HEADER = "X-Request-Id"
_FORM = re.compile(r"[A-Za-z0-9-]{8,64}")
_CONSOLE = "/admin/"
_WITHOUT_SLASH = ("/api/", "/webhooks/")
_MACHINES = "/api/v1/webhooks/"

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


class MachinesMiddleware:
    """Answers what only machines post to without what people need: session, language, cookies, forms.

    Those cost a webhook a quarter of its time. It sees no tenant's rows until it knows its caller.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(_MACHINES):
            return self.get_response(request)
        match = request.resolver_match = resolve(request.path_info)
        with isolation.nowhere():
            response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        if isinstance(response, HttpResponse):
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


class TenantScopeMiddleware:
    """Gives each request its tenant scope: none, until the API knows its caller; in the console the person's.

    What is streamed afterwards goes on in the scope in which its answer was made.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with isolation.nowhere():
            if not request.path_info.startswith(_CONSOLE):
                return self._answer(request)
            mine = reach(request)
            if mine.everything:
                with isolation.across_tenants(Sweep.SUPER_ADMIN, request.user.pk):
                    return self._answer(request)
            with isolation.of(*mine.roles):
                return self._answer(request)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = _held(iter(response), isolation.current())
        return response


def _held(parts: Iterator[bytes], scope: Scope) -> Iterator[bytes]:
    """Each part made in the scope; between them, whoever sends them is in none."""
    while True:
        with isolation.entered(scope):
            part = next(parts, None)
        if part is None:
            return
        yield part
