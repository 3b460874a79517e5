"""A tenant's staff reach nothing of another tenant: by no address, filter, search, choice or button."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from permissions.admin_base import TenantAdmin
from permissions.admin_steps import StepAdmin
from permissions.models import Membership, User
from tests.admin.conftest import Tenant, registered, text_of

Role = Membership.Role
pytestmark = pytest.mark.django_db


def rows_of(model: type[Model], tenant: Tenant) -> list[Model]:
    """A few rows of the model that belong to the tenant."""
    page: Any = admin.site.get_model_admin(model)
    manager: Any = model._default_manager
    if not isinstance(page, TenantAdmin) or not page.organization_path:
        return []
    return list(manager.filter(**{page.organization_path: tenant.organization.pk})[:2])


def name_of(model: type[Model], page: str) -> str:
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"


def pages_of(model: type[Model]) -> list[str]:
    """The names of every page of one object: Django's, the steps, and what a room adds."""
    page = admin.site.get_model_admin(model)
    prefix = f"{model._meta.app_label}_{model._meta.model_name}_"
    names = [pattern.name.removeprefix(prefix) for pattern in page.get_urls() if "object_id" in str(pattern.pattern)
             and pattern.name]  # fmt: skip
    assert {"change", "delete", "history"} <= set(names)
    return names


@pytest.mark.parametrize("role", Role)
def test_no_address_of_another_tenant_answers(mine: Tenant, other: Tenant, role: Role) -> None:
    browser = mine.staff(role)
    tried = 0
    for model, _page in registered():
        for row in rows_of(model, other):
            for name in pages_of(model):
                for method in (browser.get, browser.post):
                    response = method(reverse(name_of(model, name), args=[row.pk]))
                    assert response.status_code in {302, 403, 404}, (model, name)
                    assert other.mark not in text_of(response)
                    if response.status_code == 302:
                        # Django's answer to an unknown id: back to the first page, with a note.
                        assert response["Location"] == reverse("admin:index"), (model, name)
                    tried += 1
    # The notes about what was not found name ids alone.
    assert other.mark not in text_of(browser.get("/admin/"))
    assert tried > 100


@pytest.mark.parametrize("role", Role)
def test_no_list_names_another_tenant(mine: Tenant, other: Tenant, role: Role) -> None:
    browser = mine.staff(role)
    seen = 0
    for model, _page in registered():
        address = reverse(name_of(model, "changelist"))
        for query in ({}, {"q": other.mark.lower()}, {"organization": str(other.organization.pk)}, {"all": "1"}):
            response = browser.get(address, query)
            assert response.status_code in {200, 302, 400, 403}, (model, query)
            shown = text_of(response)
            assert other.mark not in shown, (model, query)
            seen += response.status_code == 200 and not query and mine.mark in shown
    assert seen >= (3 if role == Role.ATTENDANT else 10)


def test_no_filter_or_choice_names_another_tenant(mine: Tenant, other: Tenant, boss: Client) -> None:
    for model, _page in registered():
        listed = boss.get(reverse(name_of(model, "changelist")))
        if listed.status_code == 200:
            for spec in listed.context["cl"].filter_specs:
                assert other.mark not in str(list(spec.choices(listed.context["cl"]))), (model, spec)
        added = boss.get(reverse(name_of(model, "add")))
        assert other.mark not in text_of(added), model


def test_a_choice_of_another_tenant_is_refused(mine: Tenant, other: Tenant, boss: Client) -> None:
    key = {"organization": mine.organization.pk, "owner": other.leader.pk, "name": "x", "scopes": ["broadcast:send"]}
    group = {"organization": other.organization.pk, "name": "x", "external_id": "x", "team": other.group.team_id}
    session = {"organization": other.organization.pk, "display_name": "x"}
    contact = {"organization": other.organization.pk, "phone": "11999990002"}
    for name, data in (
        ("permissions_apikey", key),
        ("audience_group", group),
        ("channels_waha_channelsession", session),
        ("audience_contact", contact),
    ):
        response = boss.post(reverse(f"admin:{name}_add"), data)
        assert response.status_code == 200, name
        assert response.context["form"].errors, name
        assert other.mark not in text_of(response)


def test_autocomplete_stays_inside(mine: Tenant, other: Tenant, boss: Client) -> None:
    for model, _page in registered():
        for field in model._meta.get_fields():
            if field.is_relation and field.concrete:
                query: dict[str, str] = {
                    "app_label": model._meta.app_label,
                    "model_name": str(model._meta.model_name),
                    "field_name": field.name,
                    "term": other.mark[:3],
                }
                response = boss.get(reverse("admin:autocomplete"), query)
                assert response.status_code in {200, 403}, (model, field)
                assert other.mark not in text_of(response)


@pytest.mark.parametrize(
    "query",
    [
        "owner__password__startswith=a",
        "owner__memberships__organization__name__startswith=A",
        "digest__startswith=a",
        "organization__name__startswith=A",
    ],
)
def test_the_address_bar_asks_for_nothing_that_no_filter_offers(boss: Client, query: str) -> None:
    assert boss.get(reverse("admin:permissions_apikey_changelist") + "?" + query).status_code == 400


def test_no_secret_can_be_guessed_by_prefix(boss: Client) -> None:
    address = reverse("admin:channels_waha_channelsession_changelist")
    assert boss.get(f"{address}?webhook_secret__startswith=a").status_code == 400


def test_the_super_admin_sees_every_tenant_and_filters(mine: Tenant, other: Tenant, super_admin: Client) -> None:
    address = reverse("admin:audience_contact_changelist")

    both, one = super_admin.get(address), super_admin.get(address, {"organization": str(other.organization.pk)})

    assert mine.mark in text_of(both)
    assert other.mark in text_of(both)
    assert [row.organization_id for row in one.context["cl"].result_list] == [other.organization.pk] * 2
    assert super_admin.get(address, {"organization": "nonsense"}).context["cl"].result_count == 0


def test_a_role_that_ends_ends_at_the_next_click(mine: Tenant, boss: Client) -> None:
    address = reverse("admin:audience_contact_changelist")
    assert boss.get(address).status_code == 200

    Membership.objects.of(mine.organization).update(is_active=False)

    assert boss.get(address).status_code == 403


def test_staff_without_a_membership_see_nothing(mine: Tenant) -> None:
    nobody = Client()
    nobody.force_login(User.objects.create_user("ninguem", is_staff=True))

    for model, _page in registered():
        assert nobody.get(reverse(name_of(model, "changelist"))).status_code == 403
    assert mine.mark not in text_of(nobody.get("/admin/"))


def test_somebody_of_two_tenants_acts_only_where_he_may(mine: Tenant, other: Tenant) -> None:
    person = User.objects.create_user("dois", is_staff=True)
    Membership.objects.create(organization=mine.organization, user=person, role=Role.ADMIN)
    Membership.objects.create(organization=other.organization, user=person, role=Role.VIEWER)
    browser = Client()
    browser.force_login(person)

    offered = browser.get(reverse("admin:audience_group_add"))
    assert other.mark not in text_of(offered)
    for model, page in registered():
        if isinstance(page, StepAdmin):
            for row in rows_of(model, other):
                for step in page.steps:
                    address = reverse(name_of(model, step.name), args=[row.pk])
                    assert browser.post(address, {"reason": "x"}).status_code == 403, (model, step.name)
