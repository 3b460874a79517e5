"""A key makes so many requests a minute, and is told when it may go on."""

from __future__ import annotations

import time

import pytest
from django.conf import LazySettings
from django.core.cache import cache

from permissions.api import throttling
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
