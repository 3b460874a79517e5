"""Whether an answer is what the schema says: its status, its headers, its body."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, cast

from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from permissions.api import reference

_ROOT = "urn:schema"


@functools.cache
def document() -> dict[str, Any]:
    """The schema as its readers get it."""
    read: dict[str, Any] = json.loads(json.dumps(reference.document()))
    return read


@functools.cache
def _registry() -> Registry[Any]:
    resource = Resource.from_contents(document(), default_specification=DRAFT202012)
    return cast("Registry[Any]", Registry().with_resource(_ROOT, resource))


class CheckedClient(Client):
    """A client that holds every answer against the schema."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        check(response)
        return response


def check(response: Any) -> None:
    """Assert that an answer of Django's test client is documented as it is."""
    request = response.wsgi_request
    if request.resolver_match is None or request.method in {"HEAD", "OPTIONS"} or response.status_code == 405:
        return
    path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", request.resolver_match.route)
    operation = document()["paths"][path].get(request.method.lower())
    assert operation is not None, f"{request.method} {path} is not in the schema"
    said = operation["responses"].get(str(response.status_code))
    assert said is not None, f"{request.method} {path}: {response.status_code} is not in the schema"
    said = _followed(said)
    for name in said["headers"]:
        optional = name in {"Idempotent-Replayed", "Retry-After"} or name.startswith("RateLimit-")
        assert optional or response.has_header(name), f"{name} is missing"
    _check_body(response, said.get("content", {}))


def _check_body(response: Any, content: dict[str, Any]) -> None:
    media_type = response.get("Content-Type", "").partition(";")[0]
    if not content:
        assert not response.content
        return
    if response.streaming:
        return
    assert media_type in content
    if media_type == "application/json":
        schema = _absolute(content[media_type]["schema"])
        errors = Draft202012Validator(schema, registry=_registry(), format_checker=FormatChecker()).iter_errors(
            response.json()
        )
        assert [(error.json_path, error.message) for error in errors] == []


def _followed(said: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in said:
        found: Any = document()
        for name in said["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        said = found
    return said


def _absolute(schema: Any) -> Any:
    """The same with references that lead into the document."""
    if isinstance(schema, dict):
        return {name: _ROOT + value if name == "$ref" else _absolute(value) for name, value in schema.items()}
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema
