"""Were every filter by organization forgotten, the database would still show nobody another tenant's rows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import models
from django.test import Client
from django.urls import reverse

from broadcasts.models import Broadcast
from permissions import ids
from permissions.admin_base import Reach
from permissions.managers import TenantManager
from permissions.models import Membership, Scope
from tests import factories
from tests.admin.conftest import Tenant, registered, text_of
from tests.admin.test_isolation import name_of, pages_of, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def forgetful(mine: Tenant, other: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """What names the tenant in a query does nothing any more, in the API and in the console."""

    def of(self: TenantManager[Any], _organization: models.Model | UUID) -> models.QuerySet[Any]:
        return models.Manager.get_queryset(self)

    def within(_self: Reach, rows: Any, _path: str, _roles: object) -> Any:
        return rows

    monkeypatch.setattr(TenantManager, "of", of)
    monkeypatch.setattr(Reach, "within", within)
    # The test itself looks across tenants: there the filters are seen to be gone.
    assert Broadcast.objects.of(mine.organization).filter(organization=other.organization).exists()


@pytest.mark.usefixtures("forgetful")
def test_no_page_of_the_console_shows_another_tenant(mine: Tenant, other: Tenant) -> None:
    browser = mine.staff(Membership.Role.ADMIN)
    seen = 0
    for model, _page in registered():
        text = text_of(browser.get(reverse(name_of(model, "changelist"))))
        assert other.mark not in text, model
        seen += mine.mark in text
        for row in rows_of(model, other):
            for page in pages_of(model):
                answer = browser.get(reverse(name_of(model, page), args=[row.pk]))
                assert other.mark not in text_of(answer), (model, page)
    assert seen > 8


@pytest.mark.usefixtures("forgetful")
def test_no_answer_of_the_api_holds_another_tenant(mine: Tenant, other: Tenant, client: Client) -> None:
    key = factories.ApiKeyFactory.create(
        organization=mine.organization, owner=mine.leader, scopes=[scope.value for scope in Scope]
    )
    headers = factories.bearer(key)
    found = client.get("/api/v1/broadcasts", headers=headers).json()["results"]
    ours = Broadcast.unscoped.filter(organization=mine.organization).values_list("pk", flat=True)
    assert {item["id"] for item in found} == {ids.encode(ids.BROADCAST, pk) for pk in ours}
    foreign = Broadcast.unscoped.get(organization=other.organization)
    for reference in (ids.encode(ids.BROADCAST, foreign.pk), foreign.public_id):
        assert client.get(f"/api/v1/broadcasts/{reference}", headers=headers).status_code == 404
        assert (
            client.post(f"/api/v1/broadcasts/{reference}/cancel", {}, "application/json", headers=headers).status_code
            == 404
        )
    foreign.refresh_from_db()
    assert foreign.status != "canceled"
