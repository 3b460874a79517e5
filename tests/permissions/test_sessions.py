"""The console's people use the same API by their session cookie, with the rights of their role."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from permissions import ids, roles
from permissions.models import Membership, Organization, Scope, User
from tests import factories
from tests.permissions.conftest import NOTES, error

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("notes_api")]

Role = Membership.Role


def signed_in(*organizations: Organization, role: str = Role.ADMIN, **fields: Any) -> Client:
    """A browser that sends what browsers send; CSRF is enforced as in production."""
    person = factories.UserFactory.create(**({"is_staff": True} | fields))
    for organization in organizations:
        factories.MembershipFactory.create(organization=organization, user=person, role=role)
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.force_login(person)
    return browser


def post(browser: Client, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return browser.post(NOTES, {"name": "a"}, content_type="application/json", headers=named)


def token_of(browser: Client) -> str:
    """The token of the console's own pages."""
    browser.get("/login")
    return browser.cookies["csrftoken"].value


@pytest.fixture
def shop() -> Organization:
    return factories.OrganizationFactory.create()


def test_a_signed_in_person_reads_his_organization(shop: Organization) -> None:
    ours, _theirs = factories.TeamFactory.create(organization=shop), factories.TeamFactory.create()

    answer = signed_in(shop).get(NOTES)

    assert [note["name"] for note in answer.json()["results"]] == [ours.name]
    assert answer["Cache-Control"] == "no-store"
    assert "Cookie" in answer["Vary"]


def test_a_write_proves_where_it_comes_from(shop: Organization) -> None:
    browser = signed_in(shop)
    token = token_of(browser)

    assert error(post(browser)) == (403, "csrf_failed", None)
    assert error(post(browser, X_CSRFToken="x" * 32)) == (403, "csrf_failed", None)
    assert post(browser, X_CSRFToken=token).status_code == 201


def test_a_key_needs_no_such_proof(shop: Organization) -> None:
    key = factories.ApiKeyFactory.create(organization=shop)

    assert post(signed_in(shop), **factories.bearer(key)).status_code == 201


@pytest.mark.parametrize("header", ["", "Bearer x", "Basic YTph", f"Bearer cbk_abcdefgh_{'x' * 43}"])
def test_a_bad_key_is_not_mended_by_a_good_cookie(shop: Organization, header: str) -> None:
    browser = signed_in(shop)
    assert browser.get(NOTES).status_code == 200

    refused = browser.get(NOTES, headers={"Authorization": header})

    assert error(refused) == (401, "invalid_api_key", None)
    assert refused["WWW-Authenticate"] == "Bearer"
    assert refused.content == Client().get(NOTES).content


@pytest.mark.parametrize("fields", [{"is_staff": False}, {"is_active": False}])
def test_who_may_not_open_the_console_may_not_use_the_api(shop: Organization, fields: dict[str, bool]) -> None:
    browser = signed_in(shop)
    User.objects.update(**fields)

    assert error(browser.get(NOTES)) == (401, "invalid_api_key", None)


@pytest.mark.parametrize(
    ("role", "method", "status"),
    [
        (Role.ADMIN, "GET", 200),
        (Role.ADMIN, "POST", 201),
        (Role.ATTENDANT, "GET", 200),
        (Role.ATTENDANT, "POST", 201),
        (Role.VIEWER, "GET", 200),
        (Role.VIEWER, "POST", 403),
    ],
)
def test_the_role_decides(shop: Organization, role: str, method: str, status: int) -> None:
    browser = signed_in(shop, role=role)
    answer = browser.get(NOTES) if method == "GET" else post(browser, X_CSRFToken=token_of(browser))

    assert answer.status_code == status
    if status == 403:
        assert error(answer) == (403, "insufficient_scope", None)


def test_every_role_has_its_scopes_and_no_other_word_has_any() -> None:
    assert set(roles.SCOPES) == set(Role)
    assert roles.scopes_of(Role.ADMIN) == set(Scope)
    assert all(scope.endswith(":read") for scope in roles.scopes_of(Role.VIEWER))
    assert Scope.BROADCAST_READ not in roles.scopes_of(Role.ATTENDANT)
    assert roles.scopes_of("owner") == frozenset()


def test_a_role_taken_away_is_gone_at_the_next_request(shop: Organization) -> None:
    browser = signed_in(shop)
    assert browser.get(NOTES).status_code == 200

    Membership.unscoped.update(is_active=False)
    assert error(browser.get(NOTES)) == (403, "no_organization", None)


def test_of_several_organizations_one_is_named(shop: Organization) -> None:
    second, foreign = factories.OrganizationFactory.create_batch(2)
    note = factories.TeamFactory.create(organization=second)
    browser = signed_in(shop, second)

    assert error(browser.get(NOTES)) == (400, "organization_required", "X-Organization")
    for name in (second.slug, ids.encode(ids.ORGANIZATION, second.pk)):
        found = browser.get(NOTES, headers={"X-Organization": name}).json()["results"]
        assert [each["name"] for each in found] == [note.name]
    for name in (foreign.slug, ids.encode(ids.ORGANIZATION, foreign.pk), "nenhuma", "org_1"):
        assert error(browser.get(NOTES, headers={"X-Organization": name})) == (404, "organization_not_found", None)


def test_a_header_that_names_the_only_one_is_fine(shop: Organization) -> None:
    browser = signed_in(shop)

    assert browser.get(NOTES, headers={"X-Organization": shop.slug}).status_code == 200
    assert browser.get(NOTES, headers={"X-Organization": "outra"}).status_code == 404


def test_a_key_is_of_one_organization_whatever_is_named(shop: Organization) -> None:
    key = factories.ApiKeyFactory.create(organization=shop)
    other = factories.OrganizationFactory.create()
    factories.MembershipFactory.create(organization=other, user=key.owner)

    def named(slug: str) -> Any:
        return Client().get(NOTES, headers=factories.bearer(key) | {"X-Organization": slug})

    assert named(shop.slug).status_code == 200
    assert error(named(other.slug)) == (404, "organization_not_found", None)


def test_a_super_admin_acts_where_he_is_a_member(shop: Organization) -> None:
    everywhere = signed_in(is_superuser=True)
    assert error(everywhere.get(NOTES)) == (403, "no_organization", None)
    assert "super" in everywhere.get(NOTES).json()["errors"][0]["detail"]
    assert everywhere.get(NOTES, headers={"X-Organization": shop.slug}).status_code == 404

    as_viewer = signed_in(shop, is_superuser=True, role=Role.VIEWER)
    assert as_viewer.get(NOTES).status_code == 200
    assert post(as_viewer, X_CSRFToken=token_of(as_viewer)).status_code == 403


def test_a_key_costs_no_look_at_sessions(shop: Organization, django_assert_num_queries: Any) -> None:
    key = factories.ApiKeyFactory.create(organization=shop)
    browser = signed_in(shop)
    browser.get(NOTES, headers=factories.bearer(key))

    # The key, and the notes.
    with django_assert_num_queries(2):
        browser.get(NOTES, headers=factories.bearer(key))
