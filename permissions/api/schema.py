"""The OpenAPI 3.1 schema: what each view says of itself (``permissions.api.described``), and what all have in common.

The reference is in English, as the codes are: it is read beside code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from django.urls import URLPattern, URLResolver
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from permissions.api import idempotency, pagination
from permissions.api.authentication import ORGANIZATION_HEADER
from permissions.api.described import Answer, Operation, operation_of
from permissions.api.errors import RULE_CODES
from permissions.api.serializers import PrefixedIdField, StrictSerializer

Json = dict[str, Any]

# Codes that every body may meet before any of its fields is looked at.
_BODY_CODES = (
    "parse_error",
    "duplicate_field",
    "nesting_too_deep",
    "null_characters_not_allowed",
    "surrogate_characters_not_allowed",
    "unknown_field",
    "required",
    "null",
    "invalid",
)
# What Django's and DRF's fields can say and no field of ours does.
_NEVER_SAID = frozenset({"date", "make_aware", "max_string_length", "max_digits", "max_decimal_places"})
_WORDS = {
    400: "The request can't be read as its shape.",
    401: "The API key is missing, unknown, expired or revoked, or its owner is no longer active.",
    403: "It exists, and you may not.",
    404: "There is no such thing in your organization.",
    409: "The state does not allow it now.",
    411: "A body needs a Content-Length.",
    413: "The body is too large.",
    415: "The body is not of a type that is read here.",
    422: "The request was read, and a rule refuses it.",
    429: "Too many requests in this minute.",
    500: "An error of ours.",
    502: "The gateway did not answer.",
    503: "Not available right now: the same request may be sent again.",
}
_WAITS = {409, 429, 503}
# What these say is the same everywhere.
_COMMON: dict[int, tuple[str, list[str]]] = {
    401: ("InvalidApiKey", ["invalid_api_key"]),
    411: ("LengthRequired", ["length_required"]),
    413: ("RequestTooLarge", ["request_too_large"]),
    415: ("UnsupportedMediaType", ["unsupported_media_type"]),
    429: ("Throttled", ["throttled"]),
    500: ("ServerError", ["error"]),
    503: ("TemporarilyUnavailable", ["temporarily_unavailable"]),
}
_HEADERS: Json = {
    "X-Request-Id": ("The request's id, as given or as made here.", {"type": "string"}),
    "RateLimit-Limit": ("Requests in a minute.", {"type": "integer"}),
    "RateLimit-Remaining": ("Requests left in this minute.", {"type": "integer"}),
    "RateLimit-Reset": ("Seconds until the next minute begins.", {"type": "integer"}),
    "RateLimit-Policy": ("The limit and its window in seconds: `600;w=60`.", {"type": "string"}),
    "Retry-After": ("Seconds after which another try is worth it.", {"type": "integer"}),
    "Location": ("The path of what was made.", {"type": "string"}),
    "WWW-Authenticate": ("How to say who calls.", {"const": "Bearer"}),
    idempotency.REPLAYED: ("There where the answer is the first one again.", {"const": "true"}),
}
_COUNTED = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy")


class Schema(AutoSchema):
    """One method of a view, from its Operation; serializers are mapped by drf-spectacular."""

    @property
    def said(self) -> Operation:
        """The method's Operation; an empty one where a view has none yet, which a house test refuses."""
        return operation_of(self.view, self.method) or Operation(summary="")

    def get_operation_id(self) -> str:
        return operation_id(self.method, self.path)

    def get_summary(self) -> str | None:
        return _words(self.said.summary, self.view)

    def get_description(self) -> str:  # type: ignore[override] # drf-spectacular's signature is not DRF's
        scope = getattr(self.view, "required_scopes", {}).get(self.method)
        needs = f"Scope: `{scope}`." if scope else ""
        return "\n\n".join(part for part in (_words(self.said.description, self.view), needs) if part)

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").partition("/")[0]]

    def get_auth(self) -> list[Json]:
        scope = getattr(self.view, "required_scopes", {}).get(self.method)
        return [{"apiKey": [str(scope)] if scope else []}, {"session": []}]

    def _get_serializer(self) -> None:
        """Nothing is guessed."""

    def get_request_serializer(self) -> Any:
        return self.said.body

    def get_override_parameters(self) -> list[Any]:
        return list(self._own_parameters())

    def _own_parameters(self) -> Iterator[OpenApiParameter]:
        said = self.said
        for query in said.query:
            choices = list(query.choices) or None
            yield OpenApiParameter(query.name, str, description=query.description, enum=choices)
        if said.item is not None:
            limit: Json = {
                "type": "integer",
                "minimum": 1,
                "maximum": pagination.MAX_LIMIT,
                "default": pagination.DEFAULT_LIMIT,
            }
            yield OpenApiParameter("limit", limit, description="Entries in a page.")
            yield OpenApiParameter("cursor", str, description="Where a page begins: from `next` or `previous`.")
        yield _header(ORGANIZATION_HEADER, "By session cookie: which organization, by id or slug, for who has several.")
        yield _header("X-Request-Id", "Your own id: 8 to 64 letters, digits and hyphens; else one is made.")
        if self._is_idempotent():
            text = "The same request with the same key has one effect, and the first answer."
            yield _header(idempotency.HEADER, text, pattern="^[ -~]{1,255}$")

    def _is_idempotent(self) -> bool:
        return getattr(getattr(self.view, self.method.lower()), idempotency.MARK, False)

    def _get_response_bodies(self, direction: str = "response") -> Json:  # noqa: ARG002 - the package's signature
        bodies = {str(status): self._answer(answer) for status, answer in self._answers().items()}
        for status, codes in sorted(self._codes().items()):
            name, common = _COMMON.get(status, ("", []))
            is_common = codes == common
            bodies[str(status)] = {"$ref": f"#/components/responses/{name}"} if is_common else _refusal(status, codes)
        return bodies

    def _answers(self) -> Mapping[int, Answer]:
        if self.said.item is None:
            return self.said.answers
        return {200: Answer("A page, newest first unless said otherwise.", self._page(self.said.item))}

    def _page(self, item: type[serializers.Serializer[Any]]) -> Json:
        link = {"type": ["string", "null"], "format": "uri"}
        return _object(
            {"next": link, "previous": link, "results": {"type": "array", "items": self._shape(item)}},
        )

    def _answer(self, answer: Answer) -> Json:
        replayed = (idempotency.REPLAYED,) if self._is_idempotent() else ()
        body: Json = {
            "description": answer.description,
            "headers": _headers("X-Request-Id", *_COUNTED, *answer.headers, *replayed),
        }
        if answer.shape is not None:
            body["content"] = {answer.media_type: {"schema": self._shape(answer.shape)}}
        return body

    def _shape(self, shape: Any) -> Json:
        if isinstance(shape, Mapping):
            return dict(shape)
        component = self.resolve_serializer(shape, "response")
        return dict(component.ref)

    def _codes(self) -> dict[int, list[str]]:
        """The codes of each refusal: everybody's, those of the body's fields, and the operation's own."""
        by_status: dict[int, set[str]] = {}
        for status, codes in chain(self._codes_of_all(), self._codes_of_body(), self.said.refusals.items()):
            by_status.setdefault(status, set()).update(codes)
        return {status: sorted(codes) for status, codes in by_status.items() if codes}

    def _codes_of_all(self) -> Iterator[tuple[int, Iterable[str]]]:
        for status in (401, 429, 500, 503):
            yield status, _COMMON[status][1]
        yield 400, ("organization_required", "null_characters_not_allowed", "parse_error")
        yield 403, ("insufficient_scope", "no_organization", *(() if self.method == "GET" else ("csrf_failed",)))
        yield 404, ("organization_not_found", *(("not_found",) if "{" in self.path else ()))
        if any(query.choices for query in self.said.query):
            yield 400, ("invalid_choice",)
        if self.said.item is not None:
            yield 400, ("invalid_limit", "invalid_cursor")
        if self._is_idempotent():
            yield 409, ("idempotency_key_in_flight",)
            yield 422, ("idempotency_key_reused", "invalid_idempotency_key")

    def _codes_of_body(self) -> Iterator[tuple[int, Iterable[str]]]:
        if self.said.body is None:
            return
        fields = set(_codes_of(self.said.body()))
        yield 400, (*_BODY_CODES, *fields)
        yield 422, fields & RULE_CODES
        for status in (411, 413, 415):
            yield status, _COMMON[status][1]

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> Json:
        if isinstance(field, PrefixedIdField):
            known: Json = {"type": "string", "pattern": f"^{field.prefix}_[0-9a-fA-F]{{32}}$"}
            return known | ({"type": ["string", "null"]} if field.allow_null else {})
        mapped: Json = super()._map_serializer_field(field, direction, bypass_extensions)
        # A mark for a hook that we do not use.
        mapped.pop("x-spec-enum-id", None)
        return mapped

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Json:
        mapped: Json = super()._map_basic_serializer(serializer, direction)
        if direction == "response" or isinstance(serializer, StrictSerializer):
            mapped["additionalProperties"] = False
        return mapped


class Generator(SchemaGenerator):
    """All views, and the functions beside them that say in ``openapi`` what they are: ``{"post": {…}}``."""

    inspector: Any

    def parse(self, input_request: Any, public: bool) -> Json:
        paths: Json = super().parse(input_request, public)
        for path, callback in _functions(self.inspector.patterns, "/"):
            paths[path] = {
                method: {"operationId": operation_id(method, path), **operation}
                for method, operation in callback.openapi.items()
            }
        return dict(sorted(paths.items()))


def add_common_parts(result: Json, **_generator: Any) -> Json:
    """What references lead to: headers and the two ways to say who calls. A hook of drf-spectacular."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = _ERROR
    components["responses"] = {name: _refusal(status, codes) for status, (name, codes) in _COMMON.items()}
    components["headers"] = {
        name: {"description": text, "schema": schema} for name, (text, schema) in sorted(_HEADERS.items())
    }
    components["securitySchemes"] = {
        "apiKey": {"type": "http", "scheme": "bearer", "bearerFormat": "cbk_<id of 8>_<secret of 43>"},
        "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
    }
    return result


def operation_id(method: str, path: str) -> str:
    """A name for generated clients: ``post_broadcasts_pause``, ``get_broadcasts_by_reference``."""
    parts = path.removeprefix("/api/v1/").strip("/").split("/")
    words = [part.strip("{}") for part in parts if not part.startswith("{")]
    if parts[-1].startswith("{"):
        words += ["by", parts[-1].strip("{}")]
    return re.sub(r"\W", "_", "_".join([method.lower(), *words]))


def _functions(patterns: Iterable[Any], before: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        path = before + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _functions(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern) and hasattr(pattern.callback, "openapi"):
            yield path, pattern.callback


def _codes_of(field: Any) -> Iterator[str]:
    """What a field and those inside it may say is wrong."""
    if isinstance(field, serializers.Serializer):
        for inner in field.fields.values():
            yield from _codes_of(inner)
        return
    child = getattr(field, "child", None)
    if child is not None:
        yield from _codes_of(child)
    for code in field.error_messages:
        if code not in _NEVER_SAID and _can_say(field, code):
            yield code


def _can_say(field: Any, code: str) -> bool:
    """A limit is told of only where there is one."""
    limits = {"max_length", "min_length", "max_value", "min_value"}
    if code in limits:
        return getattr(field, code, None) is not None
    return code not in {"blank", "empty"} or not getattr(field, f"allow_{code}", False)


def _refusal(status: int, codes: list[str]) -> Json:
    headers = ["X-Request-Id"]
    headers += ["WWW-Authenticate"] if status == 401 else ["Retry-After"] if status in _WAITS else []
    return {
        "description": _WORDS[status],
        "headers": _headers(*headers, *(() if status in {401, 500, 503} else _COUNTED)),
        "content": {"application/json": {"schema": _narrowed(codes)}},
    }


def _narrowed(codes: list[str]) -> Json:
    """The one shape of errors, with the codes that are possible here."""
    error = {"properties": {"code": {"enum": codes}}}
    return {
        "allOf": [
            {"$ref": "#/components/schemas/Error"},
            {"properties": {"errors": {"items": error}}},
        ]
    }


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


# The one shape of errors (contract: General).
_ERROR = _object(
    {
        "type": {"type": "string", "enum": ["validation_error", "client_error", "server_error"]},
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": _object(
                {
                    "code": {"type": "string", "description": "A stable word."},
                    "detail": {"type": "string", "description": "For people; may change."},
                    "attr": {"type": ["string", "null"], "description": "The field that is meant: `variations.2`."},
                }
            ),
        },
    }
)


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(name: str, description: str, pattern: str | None = None) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description, pattern=pattern)


def _words(words: Any, view: Any) -> str:
    return str(words(view) if callable(words) else words)
