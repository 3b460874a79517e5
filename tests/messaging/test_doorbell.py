"""Rings for raw events: few for many events, and none that comes too early for the last of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app
from django.conf import settings

from messaging import doorbell
from messaging.lanes import Claim
from permissions.ids import new_id

ORGANIZATION, OTHER = new_id(), new_id()


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    current_app.set_default()
    doorbell._gathering = doorbell._Gathering()
    client.delete("inbound", doorbell._WAITING, doorbell._RUNG)
    yield client
    client.delete("inbound", doorbell._WAITING, doorbell._RUNG)


def rung(broker: redis.Redis) -> list[dict[str, Any]]:
    return [json.loads(message)["headers"] for message in broker.lrange("inbound", 0, -1)]


def test_events_of_all_organizations_ring_once_and_are_answered_together(broker: redis.Redis) -> None:
    for _ in range(20):
        doorbell.ring_apply(ORGANIZATION)
        doorbell.ring_apply(OTHER)
    (headers,) = rung(broker)
    assert headers["eta"] is not None
    assert set(doorbell.answered()) == {ORGANIZATION, OTHER}
    assert doorbell.answered() == []


def test_whoever_rang_and_waits_asks_the_broker_no_more(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    doorbell.ring_apply(ORGANIZATION)
    doorbell.ring_apply(OTHER)
    monkeypatch.setattr(doorbell, "_bell", lambda: pytest.fail("asked the broker"))
    doorbell.ring_apply(ORGANIZATION)
    doorbell.ring_apply(OTHER)


def test_an_event_of_another_process_rings_again_once_the_applier_has_begun(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_another_process() -> None:
        monkeypatch.setattr(doorbell, "_gathering", doorbell._Gathering())
        doorbell.ring_apply(ORGANIZATION)

    doorbell.ring_apply(ORGANIZATION)
    from_another_process()
    assert len(rung(broker)) == 1
    assert doorbell.answered() == [ORGANIZATION]
    from_another_process()
    assert len(rung(broker)) == 2
    assert doorbell.answered() == [ORGANIZATION]


def test_more_organizations_than_one_applier_takes_ring_for_another(broker: redis.Redis) -> None:
    organizations = {new_id() for _ in range(20)}
    for organization in organizations:
        doorbell.ring_apply(organization)
    first = doorbell.answered()
    assert len(first) == 16
    assert len(rung(broker)) == 2
    assert {*first, *doorbell.answered()} == organizations


def test_a_batch_that_breaks_off_leaves_the_claims_to_their_lease(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = redis.client.Pipeline.execute
    broken: list[str] = []

    def die(pipeline: Any, *arguments: Any, **options: Any) -> Any:
        if any(command[0][0] == "LPUSH" for command in pipeline.command_stack):
            broken.append("LPUSH")
            raise redis.exceptions.ConnectionError("Connection closed by server.")
        return execute(pipeline, *arguments, **options)

    monkeypatch.setattr(redis.client.Pipeline, "execute", die)
    assert doorbell.ring_send([Claim(new_id(), new_id(), 1, ORGANIZATION)]) is False
    assert broken
