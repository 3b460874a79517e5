"""A list asks the database as often for one row as for three."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audience.models import GroupMember
from broadcasts.models import Broadcast
from channels_waha import services as waha
from events import services as events
from tests import factories
from tests.admin.conftest import Tenant, registered
from tests.admin.test_isolation import name_of

pytestmark = pytest.mark.django_db

MOST = 15


def add_rows(tenant: Tenant, number: int) -> None:
    """Some more of everything that grows."""
    for place in range(number):
        tenant.add_person(f"119555{number}{place:04}")
        owner = factories.MemberFactory.create(organization=tenant.organization)
        factories.ApiKeyFactory.create(organization=tenant.organization, owner=owner)
        group = factories.GroupFactory.create(organization=tenant.organization, owner=owner)
        factories.TeamMemberFactory.create(team=group.team, organization=tenant.organization, user=owner)
        waha.create_session(
            organization=tenant.organization, display_name=f"N {place}", actor=events.SYSTEM, now=timezone.now()
        )
        tenant.launched()
        GroupMember.objects.create(organization=tenant.organization, group=group, given_phone=f"{place}")


def asked(browser: Client, address: str, query: dict[str, str]) -> tuple[int, list[str]]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        response = browser.get(address, query)
    statements = [item["sql"] for item in captured.captured_queries]
    return (len(statements) if response.status_code == 200 else 0), statements


def test_lists_ask_as_often_for_many_rows(mine: Tenant, boss: Client) -> None:
    pages = [reverse(name_of(model, "changelist")) for model, _page in registered()] + ["/admin/"]
    boss.get("/admin/")
    add_rows(mine, 1)
    before = {address: asked(boss, address, {}) for address in pages}
    add_rows(mine, 3)
    after = {address: asked(boss, address, {}) for address in pages}

    for address in pages:
        assert before[address][0] == after[address][0], (address, after[address][1])
        assert after[address][0] <= MOST, address


@pytest.mark.parametrize("query", ["", "?q=1199"])
def test_the_super_admins_lists_too(super_admin: Client, mine: Tenant, query: str) -> None:
    for model, _page in registered():
        number, statements = asked(super_admin, reverse(name_of(model, "changelist")) + query, {})
        assert number <= MOST, (model, statements)


def test_a_broadcasts_page_and_its_live_part(mine: Tenant, boss: Client) -> None:
    (row,) = Broadcast.objects.of(mine.organization)
    numbers: dict[str, Any] = {}
    for name in ("change", "live"):
        address = reverse(f"admin:broadcasts_broadcast_{name}", args=[row.pk])
        numbers[name] = asked(boss, address, {})
    # The outlook alone asks five: feeds, other work, rules, restrictions, what rests.
    assert numbers["live"][0] <= 12, numbers["live"][1]
    assert numbers["change"][0] <= MOST, numbers["change"][1]
