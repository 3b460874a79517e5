"""Another tenant's things are not there: every URL of the API, every method, every kind of id."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Model
from django.test import Client

from audience.models import Contact, Group
from broadcasts.models import Broadcast, Recipient
from events.models import Event
from messaging.models import Channel, Message, WebhookEvent
from permissions import ids
from permissions.models import ApiKey, Membership, Organization, Scope, Team, User
from tests import factories
from tests.admin.conftest import TEXTS, Tenant, make_tenant
from tests.conformance import document
from tests.urls import Route, routes

pytestmark = pytest.mark.django_db

# Of which rows an outside id may be, by its prefix; a new prefix is added here, with the rows of make_tenant.
ROWS: dict[str, type[Model]] = {
    ids.TEAM: Team,
    ids.API_KEY: ApiKey,
    ids.CONTACT: Contact,
    ids.GROUP: Group,
    ids.CHANNEL: Channel,
    ids.MESSAGE: Message,
    ids.BROADCAST: Broadcast,
    ids.RECIPIENT: Recipient,
    ids.EVENT: Event,
    ids.WEBHOOK_EVENT: WebhookEvent,
}
# Not of a tenant, or shared by several.
SHARED = {ids.ORGANIZATION: Organization, ids.USER: User}
ENDPOINTS = [route for route in routes("/api/") if route.view_class]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
CALLS = [
    (route, method)
    for route in ENDPOINTS
    if route.parameters
    for method in METHODS
    if route.handler("GET" if method == "HEAD" else method)
]
# A body that is accepted, for each endpoint whose body names things by id.
BODIES: dict[str, dict[str, Any]] = {
    "/api/v1/broadcasts": {"group_id": "grp-MINHA", "variations": list(TEXTS)},
    "/api/v1/broadcasts/preview": {"group_id": "grp-MINHA", "variations": list(TEXTS)},
}


@dataclass
class Places:
    mine: Tenant
    other: Tenant
    key: Any

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return Client(raise_request_exception=False).generic(
            method,
            path,
            b"" if method in {"GET", "HEAD"} else json.dumps(body or {}).encode(),
            content_type="application/json",
            headers=factories.bearer(self.key),
        )


@pytest.fixture
def places(mine: Tenant, other: Tenant) -> Places:
    Membership.objects.of(mine.organization).filter(user=mine.leader).update(role=Membership.Role.ADMIN)
    key = factories.ApiKeyFactory.create(organization=mine.organization, owner=mine.leader, scopes=list(Scope))
    return Places(mine, other, key)


@pytest.fixture
def mine(db: Any) -> Tenant:
    return make_tenant("MINHA")


@pytest.fixture
def other(db: Any) -> Tenant:
    return make_tenant("ALHEIA")


def names_of(tenant: Tenant) -> list[str]:
    """Every outside name of every row of the tenant."""
    found = []
    for prefix, model in ROWS.items():
        rows = list(model._default_manager.filter(organization=tenant.organization))
        assert rows, f"make_tenant makes no {model.__name__}"
        found += [ids.encode(prefix, row.pk) for row in rows[:2] if isinstance(row.pk, UUID)]
        found += [str(row.pk) for row in rows[:1]]
    found += list(Broadcast.objects.of(tenant.organization).values_list("public_id", flat=True))
    found += list(Group.objects.of(tenant.organization).values_list("external_id", flat=True))
    return [*found, tenant.session.session_name]


def filled(route: Route, name: str) -> str:
    return re.sub(r"{\w+}", name, route.path)


def test_every_prefix_is_known_here() -> None:
    prefixes = {value for name, value in vars(ids).items() if name.isupper() and isinstance(value, str)}

    assert prefixes == ROWS.keys() | SHARED.keys()


def test_there_is_something_to_walk() -> None:
    assert len(CALLS) >= 6


@pytest.mark.parametrize(("route", "method"), CALLS, ids=lambda part: getattr(part, "path", part))
def test_what_is_anothers_is_not_there(places: Places, route: Route, method: str) -> None:
    unknown = places.call(method, filled(route, "bc_" + "0" * 32))
    for name in names_of(places.other):
        answer = places.call(method, filled(route, name))
        assert answer.status_code == 404, (name, answer.content)
        # Nothing tells it from what does not exist.
        assert answer.content == unknown.content


@pytest.mark.parametrize(("route", "method"), CALLS, ids=lambda part: getattr(part, "path", part))
def test_what_is_ours_is_there(places: Places, route: Route, method: str) -> None:
    answers = {places.call(method, filled(route, name)).status_code for name in names_of(places.mine)}

    assert answers - {404}, "no id of ours reaches this endpoint: the walk above shows nothing of it"


def ids_in_bodies() -> list[tuple[str, str, str]]:
    """Method, path and field of each id that a body may name."""
    found = []
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"].get("$ref", "").rpartition("/")[2]
                fields = document()["components"]["schemas"].get(name, {}).get("properties", {})
                found += [(method.upper(), path, field) for field in fields if field.endswith(("_id", "_ids"))]
    return found


@pytest.mark.parametrize(("method", "path", "field"), ids_in_bodies())
def test_what_a_body_names_is_ours(places: Places, method: str, path: str, field: str) -> None:
    body = BODIES[path]
    before = Broadcast.unscoped.count()
    assert places.call(method, path, body).status_code < 300
    made = Broadcast.unscoped.count() - before

    for name in names_of(places.other):
        answer = places.call(method, path, body | {field: [name] if field.endswith("s") else name})
        assert answer.status_code in {404, 422}, (name, answer.content)
        assert "ALHEIA" not in answer.content.decode()
    assert Broadcast.unscoped.count() == before + made


def test_lists_hold_nothing_of_anothers(places: Places) -> None:
    # A number of one digit stands in many an answer.
    marks = [name for name in names_of(places.other) if len(name) > 7] + ["ALHEIA"]
    for route in ENDPOINTS:
        if not route.parameters and route.handler("GET"):
            answer = places.call("GET", route.path)
            assert answer.status_code == 200
            shown = answer.content.decode()
            assert not [mark for mark in marks if mark in shown], route.path


def test_the_session_of_a_person_of_two_tenants_is_of_one_at_a_time(places: Places) -> None:
    person = factories.UserFactory.create(is_staff=True)
    for tenant in (places.mine, places.other):
        factories.MembershipFactory.create(organization=tenant.organization, user=person, role=Membership.Role.ADMIN)
    browser = Client()
    browser.force_login(person)
    theirs = Broadcast.objects.of(places.other.organization).get()
    path = f"/api/v1/broadcasts/{theirs.public_id}"

    assert browser.get(path, headers={"X-Organization": places.mine.organization.slug}).status_code == 404
    assert browser.get(path, headers={"X-Organization": places.other.organization.slug}).status_code == 200
