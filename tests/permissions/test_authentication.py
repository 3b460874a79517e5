"""A key opens its organization; whatever is wrong with one gets the same answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from permissions import selectors, services
from permissions.models import ApiKey, Membership, User
from tests import factories
from tests.permissions.conftest import NOTES, Caller, error

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("notes_api")]

Spoil = Callable[[Any], object]


def change(model: type[Any], **fields: Any) -> Spoil:
    return lambda _key: model._default_manager.update(**fields)


WRONG: dict[str, Spoil] = {
    "expired": change(ApiKey, expires_at=datetime(2020, 1, 1, tzinfo=UTC)),
    "revoked": change(ApiKey, revoked_at=datetime(2020, 1, 1, tzinfo=UTC)),
    "unknown": lambda key: ApiKey.unscoped.all().delete(),
    "of a disabled person": change(User, is_active=False),
    "of someone who left": change(Membership, is_active=False),
    "of someone who was never here": lambda key: Membership.unscoped.all().delete(),
    "with another secret": change(ApiKey, digest="0" * 64),
}


def answer(client: Client, header: str | None) -> Any:
    return client.get(NOTES, headers={} if header is None else {"Authorization": header})


@pytest.fixture
def missing(client: Client) -> Any:
    return answer(client, None)


def test_a_call_without_a_key_says_what_is_needed(missing: Any) -> None:
    assert error(missing) == (401, "invalid_api_key", None)
    assert missing["WWW-Authenticate"] == "Bearer"
    assert missing.json()["type"] == "client_error"


@pytest.mark.parametrize("what", WRONG)
def test_a_key_that_does_not_hold_gets_the_same_answer(client: Client, missing: Any, what: str) -> None:
    key = factories.ApiKeyFactory.create()
    assert answer(client, f"Bearer {key.plain}").status_code == 200

    WRONG[what](key)
    refused = answer(client, f"Bearer {key.plain}")

    assert (refused.status_code, refused.content) == (401, missing.content)
    assert refused["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {plain}",
        "{plain}",
        "Bearer {plain} {plain}",
        "Bearer {plain}x",
        "Bearer {head}",
        "Bearer cbk_%_{tail}",
        "Bearer cbk_ABCDEFGH_{tail}",
        "Bearer cbk_abcdefgh_{tail}",
        "Bearer é{plain}",
        "Bearer {plain}\x00",
        "Bearer " + "a" * 100_000,
    ],
)
def test_what_is_no_key_gets_the_same_answer(client: Client, missing: Any, header: str) -> None:
    plain = factories.ApiKeyFactory.create().plain

    refused = answer(client, header.format(plain=plain, head=plain[:-1], tail=plain[13:]))

    assert (refused.status_code, refused.content) == (401, missing.content)


def test_the_scheme_is_read_in_any_case(client: Client) -> None:
    key = factories.ApiKeyFactory.create()

    assert answer(client, f"bearer   {key.plain}").status_code == 200


@pytest.mark.parametrize("name", ["api_key", "key", "token", "access_token", "Authorization"])
def test_a_key_in_the_query_is_not_looked_at(client: Client, missing: Any, name: str) -> None:
    key = factories.ApiKeyFactory.create()

    for text in (key.plain, f"Bearer {key.plain}"):
        assert client.get(NOTES, {name: text}).content == missing.content


def test_keys_are_asked_before_everything_else(client: Client, missing: Any) -> None:
    bad = client.post(NOTES, b"{" * 2_000_000, content_type="text/plain")

    assert (bad.status_code, bad.content) == (401, missing.content)


def test_a_key_sees_its_own_organization(client: Client) -> None:
    ours, theirs = factories.TeamFactory.create(), factories.TeamFactory.create()
    key = factories.ApiKeyFactory.create(organization=ours.organization)

    names = [note["name"] for note in answer(client, f"Bearer {key.plain}").json()["results"]]

    assert names == [ours.name]
    for other, status in ((ours, 200), (theirs, 404)):
        path = f"{NOTES}/team_{other.pk.hex}"
        assert client.get(path, headers=factories.bearer(key)).status_code == status


@pytest.mark.parametrize(
    "note", ["team_1", "grp_" + "0" * 32, "0" * 32, "team_" + "0" * 32, "%00", "team_%00", "%ed%a0%80"]
)
def test_what_is_not_ours_is_not_found(caller: Caller, note: str) -> None:
    response = caller.get(f"{NOTES}/{note}")

    assert response.status_code == 404
    assert response.json()["errors"][0]["code"] in {"note_not_found", "not_found"}


def test_a_null_in_the_query_is_refused(caller: Caller) -> None:
    assert error(caller.get(cursor="a\x00b")) == (400, "null_characters_not_allowed", "cursor")


@pytest.mark.parametrize(
    ("scopes", "method", "path", "status"),
    [
        (["broadcast:send"], "GET", NOTES, 200),
        (["broadcast:read"], "GET", NOTES, 200),
        (["messages:read"], "GET", NOTES, 403),
        (["broadcast:read"], "POST", NOTES, 403),
        (["broadcast:send"], "DELETE", f"{NOTES}/x", 403),
        (["channels:manage"], "DELETE", f"{NOTES}/x", 200),
        ([], "GET", NOTES, 403),
        (["channels:manage"], "HEAD", NOTES, 403),
        (["broadcast:send"], "PUT", NOTES, 405),
        (["broadcast:send"], "OPTIONS", NOTES, 204),
        ([], "OPTIONS", NOTES, 204),
        (["broadcast:send"], "TRACE", NOTES, 405),
    ],
)
def test_scopes_decide(caller: Caller, scopes: list[str], method: str, path: str, status: int) -> None:
    ApiKey.unscoped.update(scopes=scopes)

    response = caller.request(method, path)

    assert response.status_code == status
    if status == 403 and method != "HEAD":
        assert error(response) == (403, "insufficient_scope", None)
    if status == 405:
        assert error(response) == (405, "method_not_allowed", None)


def test_a_format_is_not_asked_for_in_the_query(caller: Caller) -> None:
    assert caller.get(format="xml").status_code == 200


def test_a_view_that_names_no_scope_answers_nobody(caller: Caller) -> None:
    assert caller.get("/api/v1/careless").status_code == 500


def test_use_is_noted_at_most_once_a_minute() -> None:
    key = factories.ApiKeyFactory.create()
    now = timezone.now()

    def noted(at: datetime) -> datetime | None:
        found = selectors.usable_key(key.plain, now=at)
        assert found is not None
        services.note_use(key=found, now=at)
        return ApiKey.unscoped.values_list("last_used_at", flat=True).get(pk=key.pk)

    assert noted(now) == now
    assert noted(now + timedelta(seconds=59)) == now
    later = now + timedelta(seconds=61)
    assert noted(later) == later


def test_two_requests_at_once_note_one_use(django_assert_num_queries: Any) -> None:
    key = factories.ApiKeyFactory.create()
    now = timezone.now()
    services.note_use(key=key, now=now)

    # The other one had read the row before.
    services.note_use(key=key, now=now + timedelta(seconds=1))
    assert ApiKey.unscoped.get(pk=key.pk).last_used_at == now

    fresh = ApiKey.unscoped.get(pk=key.pk)
    with django_assert_num_queries(0):
        services.note_use(key=fresh, now=now + timedelta(seconds=2))


def test_a_key_is_known_by_one_query(django_assert_num_queries: Any) -> None:
    key = factories.ApiKeyFactory.create()

    with django_assert_num_queries(1):
        found = selectors.usable_key(key.plain, now=timezone.now())
        assert found is not None
        assert (found.owner.username, found.organization.slug) == (key.owner.username, key.organization.slug)
