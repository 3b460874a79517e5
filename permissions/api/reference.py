"""The schema at ``/api/v1/schema``, and the page that makes it readable. Both are open to everybody."""

from __future__ import annotations

import functools
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.settings import spectacular_settings

from permissions.api.plain import answers, openapi_answer

_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "application/vnd.oai.openapi")
_JSON = "application/json"
# Nothing of the page comes from elsewhere, and nothing on it can call elsewhere.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_SCHEMA_OPERATION = {
    "summary": "This schema",
    "description": "Open to everybody. JSON, or YAML where `Accept` prefers it.",
    "tags": ["service"],
    "security": [],
    "responses": {
        "200": openapi_answer("OpenAPI 3.1.", schema={"type": "object"}, media_type=_JSON)
        | {"content": {media_type: {"schema": {"type": "object"}} for media_type in (_JSON, _YAML[0])}}
    },
}
_PAGE_OPERATION = {
    "summary": "This reference as a page",
    "tags": ["service"],
    "security": [],
    "responses": {"200": openapi_answer("HTML.", schema={"type": "string"}, media_type="text/html")},
}


@answers("GET", openapi={"get": _SCHEMA_OPERATION})
def schema(request: HttpRequest) -> HttpResponse:
    """JSON, or YAML where ``Accept`` prefers it. Made once by each process."""
    media_type = request.get_preferred_type([_JSON, *_YAML]) or _JSON
    response = HttpResponse(_rendered(media_type != _JSON), content_type=f"{media_type}; charset=utf-8")
    response["Vary"] = "Accept"
    response["Cache-Control"] = "public, max-age=300"
    return response


@answers("GET", openapi={"get": _PAGE_OPERATION})
def page(request: HttpRequest) -> HttpResponse:
    """The schema, readable; a person who is signed in can try things out."""
    response = render(request, "api/reference.html")
    response["Content-Security-Policy"] = _POLICY
    return response


@functools.lru_cache(maxsize=2)
def _rendered(is_yaml: bool) -> bytes:
    renderer = OpenApiYamlRenderer() if is_yaml else OpenApiJsonRenderer()
    rendered: bytes = renderer.render(document(), renderer_context={})
    return rendered


def document() -> dict[str, Any]:
    """The whole schema."""
    with translation.override("en"):
        made: dict[str, Any] = spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(request=None, public=True)
    return made
