"""What every endpoint of the API has, so that a new one can't be forgotten."""

from __future__ import annotations

import pytest
from django.test import Client

from permissions.api.idempotency import MARK
from permissions.api.views import ApiView
from permissions.models import Scope
from tests import factories
from tests.urls import Route, routes

# Called by gateways, under signatures of their own.
WEBHOOKS_IN = ("/api/v1/webhooks/waha/", "/webhooks/whatsapp-status")
ENDPOINTS = [route for route in routes("/api/", "/webhooks/") if not route.path.startswith(WEBHOOKS_IN)]
# What anybody may read, without a key.
OPEN = {"/api/v1/schema", "/api/v1/docs"}


def name(route: Route) -> str:
    return route.path


def test_there_are_endpoints() -> None:
    assert len(ENDPOINTS) >= 6


@pytest.mark.parametrize("route", ENDPOINTS, ids=name)
def test_every_endpoint_asks_who_calls(route: Route) -> None:
    assert route.path in OPEN or issubclass(route.view_class, ApiView)


@pytest.mark.parametrize("route", ENDPOINTS, ids=name)
def test_every_post_takes_an_idempotency_key(route: Route) -> None:
    handler = route.handler("POST")

    assert handler is None or getattr(handler, MARK, False), "decorate it with permissions.api.idempotency.idempotent"


@pytest.mark.parametrize("route", ENDPOINTS, ids=name)
def test_no_path_ends_in_a_slash(route: Route) -> None:
    assert not route.path.endswith("/")


@pytest.mark.parametrize("route", ENDPOINTS, ids=name)
def test_every_method_names_its_scope(route: Route) -> None:
    if route.path in OPEN:
        return
    answered = {method for method in ("GET", "POST", "PUT", "PATCH", "DELETE") if route.handler(method) is not None}
    assert answered == set(route.view_class.required_scopes)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    ["/static/console/live.js", "/static/none.js", "/admin/", "/admin/login/", "/health", "/nowhere", "/api/v1/x"],
)
def test_every_answer_has_an_id(client: Client, path: str) -> None:
    assert client.get(path, headers={"X-Request-Id": "pedido-0001"})["X-Request-Id"] == "pedido-0001"


@pytest.mark.django_db
@pytest.mark.parametrize("route", ENDPOINTS, ids=name)
def test_a_slash_at_the_end_changes_no_answer(client: Client, route: Route) -> None:
    path = route.path.replace("{reference}", "bc_" + "0" * 32)
    headers = {"X-Request-Id": "pedido-0001"} | factories.bearer(factories.ApiKeyFactory.create(scopes=list(Scope)))
    for method in ("GET", "POST", "PUT", "OPTIONS"):
        plain, slashed = (
            client.generic(method, form, b"{}", content_type="application/json", headers=headers)
            for form in (path, f"{path}/")
        )
        assert (slashed.status_code, slashed.content) == (plain.status_code, plain.content)
        assert not 300 <= slashed.status_code < 400
