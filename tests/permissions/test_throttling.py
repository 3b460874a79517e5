"""A key makes so many requests a minute, and is told when it may go on."""

from __future__ import annotations

import time

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from permissions.api import floods, throttling
from permissions.models import ApiKey, Membership
from tests import factories
from tests.permissions.conftest import Caller, error

pytestmark = pytest.mark.django_db


class Clock:
    """The clock that requests are counted by, at 12:00:20 of some day."""

    def __init__(self) -> None:
        self.now = time.time() // 60 * 60 + 20

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Clock:
    settings.API_REQUESTS_PER_MINUTE = 3
    clock = Clock()
    monkeypatch.setattr(throttling, "time", clock)
    monkeypatch.setattr(floods, "time", clock)
    return clock


def test_the_next_minute_is_another(caller: Caller, clock: Clock) -> None:
    assert [caller.get().status_code for _ in range(4)] == [200, 200, 200, 429]

    clock.now += 39.5
    refused = caller.get()
    assert error(refused) == (429, "throttled", None)
    assert refused["Retry-After"] == "1"

    clock.now += 1
    assert caller.get().status_code == 200


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("language", "word"), [("pt-br", "Pedidos demais"), ("en", "Too many requests")])
def test_the_refusal_is_in_the_callers_language(caller: Caller, language: str, word: str) -> None:
    answers = [caller.post({"name": None}, **{"Accept-Language": language}) for _ in range(4)]

    assert answers[-1].status_code == 429
    assert answers[-1].json()["errors"][0]["detail"].startswith(word)


@pytest.mark.usefixtures("clock")
def test_each_key_has_its_own_count(caller: Caller) -> None:
    other = Caller(factories.ApiKeyFactory.create(organization=caller.key.organization), caller.client)
    assert [caller.get().status_code for _ in range(4)][-1] == 429

    assert other.get().status_code == 200


@pytest.mark.usefixtures("clock")
def test_whoever_is_refused_for_his_key_is_not_told_of_a_limit(caller: Caller) -> None:
    caller.key.plain = caller.key.plain[:-1] + ("a" if caller.key.plain[-1] != "a" else "b")

    assert {caller.get().status_code for _ in range(6)} == {401}


@pytest.mark.usefixtures("clock")
def test_without_a_cache_nobody_is_held_up(caller: Caller, settings: LazySettings) -> None:
    backend = "django.core.cache.backends.redis.RedisCache"
    # Nothing listens on this port of the loopback.
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}

    assert {caller.get().status_code for _ in range(6)} == {200}


@pytest.mark.usefixtures("clock")
def test_a_cache_that_forgets_starts_again(caller: Caller) -> None:
    assert [caller.get().status_code for _ in range(4)][-1] == 429
    cache.clear()

    assert caller.get().status_code == 200


def test_every_answer_says_how_many_are_left(caller: Caller, clock: Clock) -> None:
    left = [caller.get(), caller.request("PUT"), caller.post({"name": 7}), caller.get()]

    assert [answer.status_code for answer in left] == [200, 405, 400, 429]
    assert [answer["RateLimit-Remaining"] for answer in left] == ["2", "1", "0", "0"]
    for answer in left:
        assert (answer["RateLimit-Limit"], answer["RateLimit-Reset"]) == ("3", "40")
        assert answer["RateLimit-Policy"] == "3;w=60"
    assert left[-1]["Retry-After"] == "40"
    clock.now += 40
    assert caller.get()["RateLimit-Remaining"] == "2"


@pytest.mark.usefixtures("clock")
def test_a_refusal_for_want_of_a_scope_counts_too(caller: Caller) -> None:
    ApiKey.unscoped.update(scopes=[])

    assert [caller.get().status_code for _ in range(4)] == [403, 403, 403, 429]


@pytest.mark.usefixtures("clock", "notes_api")
def test_a_person_is_counted_over_all_his_browsers() -> None:
    person = factories.MemberFactory.create(is_staff=True)
    Membership.unscoped.update(role=Membership.Role.ADMIN)
    browsers = [Client(), Client()]
    for browser in browsers:
        browser.force_login(person)

    answers = [browser.get("/api/v1/notes").status_code for browser in browsers * 2]

    assert answers == [200, 200, 200, 429]


class Flood:
    """Requests with unknown keys, from one address."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address

    def get(self, key: str = f"cbk_abcdefgh_{'x' * 43}", **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Authorization": f"Bearer {key}"} | named
        return self.client.get("/api/v1/notes", headers=sent, REMOTE_ADDR=self.address).status_code


@pytest.fixture
def flood(caller: Caller, clock: Clock, settings: LazySettings) -> Flood:
    cache.clear()
    settings.API_BAD_KEYS_PER_MINUTE = 3
    return Flood(caller.client, "203.0.113.7")


def test_a_flood_of_bad_keys_is_refused_without_a_query(
    flood: Flood, clock: Clock, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    assert [flood.get() for _ in range(3)] == [401, 401, 401]

    with django_assert_num_queries(0):
        refused = flood.client.get(
            "/api/v1/notes", headers={"Authorization": f"Bearer cbk_abcdefgh_{'x' * 43}"}, REMOTE_ADDR=flood.address
        )
    assert error(refused) == (429, "throttled", None)
    assert refused["Retry-After"] == "40"

    assert Flood(flood.client, "203.0.113.8").get() == 401
    clock.now += 40
    assert flood.get() == 401


def test_who_has_no_key_at_all_is_told_so_in_a_flood(flood: Flood) -> None:
    assert [flood.get() for _ in range(4)][-1] == 429

    assert flood.client.get("/api/v1/notes", REMOTE_ADDR=flood.address).status_code == 401


def test_a_key_in_use_goes_on_from_a_flooding_address(flood: Flood, caller: Caller) -> None:
    assert flood.get(caller.key.plain) == 200
    assert [flood.get() for _ in range(4)][-1] == 429

    assert flood.get(caller.key.plain) == 200
    unused = factories.ApiKeyFactory.create()
    assert flood.get(unused.plain) == 429


def test_behind_the_proxy_the_address_is_the_one_that_the_proxy_saw(flood: Flood, settings: LazySettings) -> None:
    assert [flood.get(X_Forwarded_For=f"198.51.100.{number}") for number in range(4)][-1] == 429

    settings.BEHIND_PROXY = True
    forged = [flood.get(X_Forwarded_For=f"198.51.100.{number}, 192.0.2.1") for number in range(4)]
    assert forged == [401, 401, 401, 429]
    assert flood.get(X_Forwarded_For="192.0.2.2") == 401


def test_without_a_cache_bad_keys_are_still_bad(flood: Flood, settings: LazySettings) -> None:
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}

    assert {flood.get() for _ in range(5)} == {401}
