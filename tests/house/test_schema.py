"""The schema is valid, whole, and open; its page needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from openapi_spec_validator import validate

from permissions.api import reference
from permissions.models import Scope
from tests.conformance import document
from tests.urls import Route, routes

ROUTES = routes("/api/v1", "/health", "/metrics")
METHODS = ("get", "post", "put", "patch", "delete")
SCHEMA, PAGE = "/api/v1/schema", "/api/v1/docs"


def test_it_is_a_valid_schema_of_its_version() -> None:
    validate(document())
    assert document()["openapi"].startswith("3.1.")


def test_it_is_made_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    with GENERATOR_STATS.silence():
        reference.document()
        assert not GENERATOR_STATS
    assert capsys.readouterr().err == ""


def test_it_has_every_path_once_and_no_other() -> None:
    assert sorted(document()["paths"]) == sorted(route.path for route in ROUTES)
    assert not [path for path in document()["paths"] if path.endswith("/")]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.view_class], ids=lambda route: route.path)
def test_it_has_every_method_of_a_view(route: Route) -> None:
    answered = {method for method in METHODS if route.handler(method) is not None}

    assert set(document()["paths"][route.path]) == answered


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]


@pytest.mark.parametrize(
    "operation", [each for _name, each in operations()], ids=[name for name, _each in operations()]
)
def test_every_operation_says_what_it_is(operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert any(status.startswith("2") for status in operation["responses"])
    if not operation["security"]:
        return
    (scope,) = operation["security"][0]["apiKey"]
    assert scope in Scope.values
    assert {"400", "401", "403", "404", "429", "500", "503"} <= set(operation["responses"])
    if "requestBody" in operation:
        assert {"409", "411", "413", "415", "422"} <= set(operation["responses"])


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _name, operation in operations()]

    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z_]+", operation_id) for operation_id in ids)


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "text/html"])
def test_everybody_reads_it_as_json(client: Client, accept: str) -> None:
    answer = client.get(SCHEMA, headers={"Accept": accept} if accept else {})

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert answer.json() == document()


@pytest.mark.parametrize("accept", ["application/yaml", "application/vnd.oai.openapi", "text/yaml;q=0.9"])
def test_or_as_yaml(client: Client, accept: str) -> None:
    answer = client.get(SCHEMA, headers={"Accept": accept})

    assert answer["Content-Type"].partition(";")[0] == accept.partition(";")[0]
    assert yaml.safe_load(answer.content) == document()


def test_the_page_takes_nothing_from_elsewhere(client: Client) -> None:
    answer = client.get(PAGE)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assets = re.findall(r"(?:src|href)=\"([^\"]+)\"", page)
    assert len(assets) >= 4
    for asset in assets:
        assert asset.startswith("/"), asset
        assert client.get(asset).status_code == 200, asset
    assert "<script>" not in page
    assert "style=" not in page
    assert f'data-schema="{SCHEMA}"' in page


@pytest.mark.parametrize("path", [SCHEMA, PAGE, "/health", "/health/ready", "/api/v1/webhooks/waha/loja_1"])
def test_a_method_that_is_not_answered_is_a_405_in_json(path: str) -> None:
    browser = Client(enforce_csrf_checks=True)

    for method in ("PUT", "PATCH", "DELETE", "TRACE"):
        answer = browser.generic(method, path, b"{}", content_type="application/json")
        assert answer.status_code == 405
        assert json.loads(answer.content)["errors"][0]["code"] == "method_not_allowed"
        assert "OPTIONS" in answer["Allow"]
    asked = browser.generic("OPTIONS", path)
    assert (asked.status_code, asked.content) == (204, b"")
