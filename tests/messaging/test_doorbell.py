"""Rings for raw events: few for many events, and none that comes too early for the last of them."""

from __future__ import annotations

import json
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
    client.delete("inbound")
    yield client
    client.delete("inbound")


def rung(broker: redis.Redis) -> list[dict[str, Any]]:
    return [json.loads(message)["headers"] for message in broker.lrange("inbound", 0, -1)]


def test_many_events_of_an_organization_ring_once(broker: redis.Redis) -> None:
    for _ in range(20):
        doorbell.ring_apply(ORGANIZATION)
    (headers,) = rung(broker)
    assert headers["eta"] is not None
    doorbell.ring_apply(OTHER)
    assert len(rung(broker)) == 2


def test_an_event_of_another_process_rings_again_once_the_applier_has_begun(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = new_id()
    doorbell.ring_apply(organization)
    monkeypatch.setattr(doorbell, "_rung_until", {})
    doorbell.ring_apply(organization)
    assert len(rung(broker)) == 1
    doorbell.answered(organization)
    doorbell.ring_apply(organization)
    assert len(rung(broker)) == 2


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
