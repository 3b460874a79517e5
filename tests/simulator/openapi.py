"""WAHA's own OpenAPI document (2026.7.1, words and examples left out), and how far it is true.

The document calls nothing nullable and lists as required what its own server leaves out: the recorded exchanges
show which. Those are let pass; a wrong type, an unknown enum value or any other missing field is not.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from openapi_schema_validator import OAS31Validator

_FILE = Path(__file__).resolve().parent.parent / "cases" / "waha-openapi.json"
# Schema → what it requires and a recorded answer or delivery does without.
NEVER_SENT: dict[str, set[str]] = {
    "WAMessage": {"to", "participant", "mediaUrl"},
    "WAMessageEditedBody": {"to", "participant", "mediaUrl"},
    "WAMessageReaction": {"to", "participant"},
    "WAMessageAckBody": {"to", "participant"},
    "MeInfo": {"pushName"},
    "ReplyToMessage": {"hasMedia"},
    # `vcard` may be left out: the server builds it of the other fields.
    "Contact": {"vcard"},
}


@cache
def document() -> dict[str, Any]:
    return dict(json.loads(_FILE.read_text("utf-8")))


def operation(method: str, path: str) -> dict[str, Any] | None:
    """What the document says of a call; parameters may have other names there."""
    wanted = _nameless(path)
    for found, methods in document()["paths"].items():
        if _nameless(found) == wanted and method.lower() in methods:
            return dict(methods[method.lower()])
    return None


def faults_of_request(method: str, path: str, body: Any) -> list[str]:
    """What is wrong with a body; nothing when the document knows no body there."""
    found = operation(method, path) or {}
    schema = _json_schema(found.get("requestBody", {}).get("content", {}))
    return [] if schema is None else faults(schema, body)


def faults_of_answer(method: str, path: str, status: int, body: Any) -> list[str]:
    """What is wrong with an answer; nothing where the document has no schema for it."""
    responses = (operation(method, path) or {}).get("responses", {})
    # Some calls answer 201 where the document says 200: it was not asked of a server either way.
    found = responses.get(str(status)) or responses.get("200") or responses.get("201") or {}
    schema = _json_schema(found.get("content", {}))
    return [] if schema is None else faults(schema, body)


def faults_of(schema: str, value: Any) -> list[str]:
    return faults({"$ref": f"#/components/schemas/{schema}"}, value)


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    validator = OAS31Validator({**_loose(schema), "components": {"schemas": _schemas()}})
    return [f"{'.'.join(map(str, error.path))}: {error.message}"[:300] for error in validator.iter_errors(value)]


@cache
def _schemas() -> dict[str, Any]:
    schemas = {name: _loose(schema) for name, schema in document()["components"]["schemas"].items()}
    for name, absent in NEVER_SENT.items():
        schemas[name]["required"] = [field for field in schemas[name]["required"] if field not in absent]
    return schemas


def _loose(schema: Any) -> Any:
    """Every property may be null: the document marks none that is. A bare object is one whose type it did not know."""
    if isinstance(schema, list):
        return [_loose(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "object"}:
        return {}
    loose = {key: _loose(item) for key, item in schema.items()}
    if isinstance(loose.get("properties"), dict):
        loose["properties"] = {
            name: {"anyOf": [found, {"type": "null"}]} for name, found in loose["properties"].items()
        }
    return loose


def _json_schema(content: dict[str, Any]) -> dict[str, Any] | None:
    schema = content.get("application/json", {}).get("schema")
    return None if schema is None else dict(schema)


def _nameless(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
