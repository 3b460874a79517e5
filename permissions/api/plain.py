"""Endpoints that are plain functions: what anybody may ask, without key, session or body."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from permissions.api.errors import body

View = Callable[..., HttpResponseBase]
# Where permissions.api.schema finds what a function is.
OPENAPI = "openapi"


def answers(*methods: str, openapi: Mapping[str, Any]) -> Callable[[View], View]:
    """Let a function answer these methods (GET also as HEAD) and OPTIONS; any other gets 405 in JSON.

    ``openapi``: each of them as an operation of OpenAPI, by its name in small letters. No CSRF check stands before
    it: what is not answered anyway need not be proved.
    """
    allowed = [*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"]

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if request.method == "OPTIONS":
                return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(allowed)})
            if request.method not in allowed:
                return method_not_allowed(allowed)
            return view(request, *args, **kwargs)

        setattr(answer, OPENAPI, openapi)
        return answer

    return decorate


def method_not_allowed(allowed: list[str]) -> JsonResponse:
    """405 in the API's shape."""
    answer = body("client_error", "method_not_allowed", _("This method is not allowed here."))
    return JsonResponse(answer, status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(allowed)})


def openapi_answer(
    description: str, *, schema: Mapping[str, Any] | None = None, media_type: str = ""
) -> dict[str, Any]:
    """A response of OpenAPI, with the header that every answer has."""
    answer: dict[str, Any] = {
        "description": description,
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
    }
    if media_type:
        answer["content"] = {media_type: {"schema": dict(schema or {})}}
    return answer
