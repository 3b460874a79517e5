"""What each role sees and does."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from events.models import Event
from permissions import ids
from permissions.admin_steps import StepAdmin
from permissions.models import ApiKey, Membership
from tests import factories
from tests.admin.conftest import Page, Tenant, registered
from tests.admin.test_isolation import name_of, rows_of

Role = Membership.Role
pytestmark = pytest.mark.django_db

ATTENDANTS_SEE = {"Contact", "Group", "GroupMember"}
SUPER_ADMINS_SEE = {"User", "CronRun", "PeriodicTask"}
# Message bodies in the raw are personal data.
ADMINS_SEE = {"WebhookEvent"}


def sees(browser: Client) -> set[str]:
    found = set()
    for model, _page in registered():
        if browser.get(reverse(name_of(model, "changelist"))).status_code == 200:
            found.add(model.__name__)
    return found


def test_each_role_sees_its_pages(mine: Tenant, super_admin: Client) -> None:
    everything = {model.__name__ for model, _page in registered()}

    assert sees(super_admin) == everything
    assert sees(mine.staff(Role.ADMIN)) == everything - SUPER_ADMINS_SEE
    assert sees(mine.staff(Role.VIEWER)) == everything - SUPER_ADMINS_SEE - ADMINS_SEE
    assert sees(mine.staff(Role.ATTENDANT)) == ATTENDANTS_SEE


def test_a_viewer_does_nothing(mine: Tenant) -> None:
    browser = mine.staff(Role.VIEWER)
    tried = 0
    for model, page in registered():
        assert browser.get(reverse(name_of(model, "add"))).status_code == 403, model
        for row in rows_of(model, mine):
            address = reverse(name_of(model, "change"), args=[row.pk])
            assert browser.post(address, {"name": "x"}).status_code == 403, model
            assert browser.post(reverse(name_of(model, "delete"), args=[row.pk]), {"post": "yes"}).status_code == 403
            for step in page.steps if isinstance(page, StepAdmin) else ():
                assert browser.post(reverse(name_of(model, step.name), args=[row.pk])).status_code == 403
                tried += 1
    assert tried > 20


def test_nobody_deletes_and_the_machines_rows_are_only_read(mine: Tenant, super_admin: Client) -> None:
    editable = {"User", "Team", "TeamMember"}
    for model, _page in registered():
        for row in rows_of(model, mine):
            assert super_admin.post(reverse(name_of(model, "delete"), args=[row.pk])).status_code == 403, model
            if model.__name__ not in editable:
                changed = super_admin.post(reverse(name_of(model, "change"), args=[row.pk]), {"name": "x"})
                assert changed.status_code == 403, model


def test_an_org_admin_changes_no_roles_teams_or_limits(mine: Tenant, boss: Client, page: Page) -> None:
    place = Membership.objects.of(mine.organization).get(user=mine.leader)
    channel = mine.session.channel
    refused = [
        boss.post(page(place, "role"), {"role": "admin"}),
        boss.post(page(channel, "age"), {"since": "2000-01-01", "reason": "x"}),
        boss.post(page(channel, "window"), {"opens": "00:00", "closes": "00:00", "reason": "x"}),
        boss.post(reverse("admin:permissions_membership_add"), {}),
        boss.post(reverse("admin:permissions_organization_add"), {}),
        boss.post(reverse("admin:permissions_team_add"), {}),
        boss.post(reverse("admin:permissions_teammember_add"), {}),
        boss.post(reverse("admin:permissions_user_add"), {}),
        boss.get(reverse("admin:permissions_user_change", args=[mine.leader.pk])),
    ]
    assert [response.status_code for response in refused] == [403] * len(refused)


def test_the_super_admin_makes_a_tenant_and_its_people(super_admin: Client, mine: Tenant, page: Page) -> None:
    new = {"name": "Nova", "slug": "nova", "time_zone": "America/Bahia", "region": "BR"}
    assert super_admin.post(reverse("admin:permissions_organization_add"), new).status_code == 302
    wrong = super_admin.post(reverse("admin:permissions_organization_add"), new | {"slug": "NOVA_1", "region": "XX"})
    assert set(wrong.context["form"].errors) & {"slug", "region"}

    place = {"organization": mine.organization.pk, "user": mine.leader.pk, "role": "viewer"}
    assert super_admin.post(reverse("admin:permissions_membership_add"), place).status_code == 302
    row = Membership.objects.of(mine.organization).get(user=mine.leader)
    assert row.role == "viewer"
    super_admin.post(page(row, "role"), {"role": "admin"})
    row.refresh_from_db()
    assert row.role == "admin"


def test_a_leader_is_a_member_of_his_teams_organization(super_admin: Client, mine: Tenant, other: Tenant) -> None:
    line: dict[str, Any] = {"team": mine.group.team_id, "user": other.leader.pk, "role": "LEADER", "status": "ACTIVE"}

    response = super_admin.post(reverse("admin:permissions_teammember_add"), line)

    assert "user" in response.context["adminform"].form.errors


def test_an_admin_issues_keys_for_members_alone(mine: Tenant, boss: Client) -> None:
    before = ApiKey.objects.of(mine.organization).count()
    data = {"organization": mine.organization.pk, "owner": mine.leader.pk, "name": "n", "scopes": ["broadcast:read"]}

    assert mine.staff(Role.ATTENDANT).post(reverse("admin:permissions_apikey_add"), data).status_code == 403
    assert boss.post(reverse("admin:permissions_apikey_add"), data).status_code == 200

    assert ApiKey.objects.of(mine.organization).count() == before + 1


def test_a_super_admin_takes_a_person_out(mine: Tenant, super_admin: Client, boss: Client) -> None:
    key = factories.ApiKeyFactory.create(organization=mine.organization, owner=mine.leader)
    place = Membership.objects.of(mine.organization).get(user=mine.leader)
    address = reverse("admin:permissions_membership_end", args=[place.pk])
    assert boss.post(address).status_code == 403
    assert Client().get("/api/v1/broadcasts", headers=factories.bearer(key)).status_code == 200

    assert super_admin.post(address).status_code == 302

    assert Client().get("/api/v1/broadcasts", headers=factories.bearer(key)).status_code == 401
    told = Event.objects.filter(type="membership.role_changed", subject=ids.encode(ids.USER, mine.leader.pk)).latest(
        "pk"
    )
    assert told.data == {"from": place.role, "to": None}
    assert (
        address not in super_admin.get(reverse("admin:permissions_membership_change", args=[place.pk])).content.decode()
    )
