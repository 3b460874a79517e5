"""A key, and a client that calls the API under test with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from tests import factories

NOTES = "/api/v1/notes"


@dataclass
class Caller:
    """Calls with a key; bodies go as they are (bytes, text) or as JSON."""

    key: Any
    client: Client

    def post(self, body: Any, path: str = NOTES, content_type: str = "application/json", **headers: str) -> Any:
        raw = body if isinstance(body, bytes | str) else json.dumps(body)
        return self.client.post(path, raw, content_type=content_type, headers=self._headers(headers))

    def get(self, path: str = NOTES, **parameters: Any) -> Any:
        return self.client.get(path, parameters, headers=self._headers({}))

    def request(self, method: str, path: str = NOTES, **options: Any) -> Any:
        return self.client.generic(method, path, headers=self._headers({}), **options)

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return factories.bearer(self.key) | {name.replace("_", "-"): value for name, value in more.items()}


@pytest.fixture
def notes_api(settings: LazySettings) -> None:
    settings.ROOT_URLCONF = "tests.permissions.notes_api"


@pytest.fixture
def caller(notes_api: None, db: None) -> Caller:
    """A key with both broadcast scopes. Errors of views become answers, as they do in production."""
    key = factories.ApiKeyFactory.create(scopes=["broadcast:send"])
    return Caller(key, Client(raise_request_exception=False))


def error(response: Any) -> tuple[int, str, str | None]:
    """Status, code and attr of an answer with one error."""
    body = response.json()
    assert set(body) == {"type", "errors"}
    (only,) = body["errors"]
    assert set(only) == {"code", "detail", "attr"}
    return response.status_code, only["code"], only["attr"]
