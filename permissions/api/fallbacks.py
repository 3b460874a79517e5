"""Answers to what reached no view: JSON under the API's paths, Django's own pages elsewhere."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views import csrf, defaults

from permissions.api.errors import body
from permissions.api.refusals import TemporarilyUnavailable

_PATHS = ("/api/", "/webhooks/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler400: a host, a header or a form that Django refuses."""
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    return _client_error(HTTPStatus.BAD_REQUEST, "parse_error", _("The request cannot be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler403."""
    if not _is_api(request):
        return defaults.permission_denied(request, exception)
    return _client_error(HTTPStatus.FORBIDDEN, "permission_denied", _("This is not allowed."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler404."""
    if not _is_api(request):
        return defaults.page_not_found(request, exception)
    return _client_error(HTTPStatus.NOT_FOUND, "not_found", _("There is nothing here."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """handler500; 503 where it was the database that did not answer, for then trying again helps."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return _unavailable(request)
    if not _is_api(request):
        return defaults.server_error(request)
    answer = body("server_error", "error", _("A server error occurred."))
    return JsonResponse(answer, status=HTTPStatus.INTERNAL_SERVER_ERROR)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW."""
    if not _is_api(request):
        return csrf.csrf_failure(request, reason)
    return _client_error(HTTPStatus.FORBIDDEN, "csrf_failed", _("The CSRF check failed."))


def _unavailable(request: HttpRequest) -> HttpResponse:
    """Made without the database: no session, no person, no page of the console."""
    headers = {"Retry-After": str(TemporarilyUnavailable.wait)}
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if not _is_api(request):
        return HttpResponse(render_to_string("503.html"), status=status, headers=headers)
    answer = body("server_error", TemporarilyUnavailable.default_code, str(TemporarilyUnavailable.default_detail))
    return JsonResponse(answer, status=status, headers=headers)


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(_PATHS)


def _client_error(status: HTTPStatus, code: str, detail: str) -> JsonResponse:
    return JsonResponse(body("client_error", code, detail), status=status)
