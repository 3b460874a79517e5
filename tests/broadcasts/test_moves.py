"""Pause, resume, cancel: nobody twice, nobody missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from broadcasts import feed, services
from broadcasts.models import Broadcast, Feed
from broadcasts.refusals import InvalidTransition
from events.models import Event
from messaging import delivery, lanes
from messaging.models import Message, Stream
from permissions import ids
from tests.broadcasts.conftest import Shop

pytestmark = pytest.mark.django_db


def turn(shop: Shop) -> int:
    Feed.objects.of(shop.organization).filter(feed_at__isnull=False).update(feed_at=timezone.now())
    return feed.run(now=timezone.now())


def move(shop: Shop, broadcast: Broadcast, verb: Callable[..., Broadcast]) -> Broadcast:
    return verb(broadcast=broadcast, actor=shop.actor, now=timezone.now())


def stream(shop: Shop) -> Stream:
    return Stream.objects.of(shop.organization).get()


@pytest.mark.usefixtures("slow_lanes")
def test_a_pause_holds_what_is_queued_and_feeds_nothing(shop: Shop) -> None:
    shop.add_people(5)
    broadcast = shop.fed()

    assert move(shop, broadcast, services.pause).status == "paused"

    assert stream(shop).state == "paused"
    assert lanes.claim(limit=10) == []
    assert turn(shop) == 0
    assert shop.counts(broadcast) == {"queued": 2, "pending": 3}


@pytest.mark.usefixtures("slow_lanes")
def test_pause_and_resume_neither_repeat_nor_skip(shop: Shop) -> None:
    shop.add_people(9)
    broadcast = shop.fed()
    for _round in range(6):
        shop.settle(broadcast, "sent", 1)
        move(shop, broadcast, services.pause)
        turn(shop)
        move(shop, broadcast, services.resume)
        turn(shop)
    shop.settle(broadcast, "sent")
    turn(shop)

    messages = shop.messages(broadcast)
    assert [message.pk for message in messages] == [person.message_id for person in shop.recipients(broadcast)]
    assert set(Counter(message.address for message in messages).values()) == {1}
    assert len(messages) == 9


@pytest.mark.usefixtures("slow_lanes")
def test_a_resumed_lane_is_awake(shop: Shop) -> None:
    shop.add_people(2)
    broadcast = shop.fed()
    move(shop, broadcast, services.pause)
    assert lanes.claim(limit=10) == []

    move(shop, broadcast, services.resume)

    assert len(lanes.claim(limit=10)) == 1


def test_a_broadcast_paused_before_its_launch_is_launched_when_resumed(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    move(shop, broadcast, services.pause)
    assert services.launch_due(now=timezone.now()) == 0

    assert move(shop, broadcast, services.resume).status == "queued"
    assert services.launch_due(now=timezone.now()) == 1
    assert feed.run(now=timezone.now()) == 1


@pytest.mark.usefixtures("slow_lanes")
def test_a_cancel_ends_what_has_not_left(shop: Shop) -> None:
    shop.add_people(5)
    shop.add("nada")
    broadcast = shop.fed()
    shop.settle(broadcast, "read", 1)

    broadcast = move(shop, broadcast, services.cancel)

    assert broadcast.finished_at is not None
    assert shop.counts(broadcast) == {"read": 1, "canceled": 4, "excluded": 1}
    assert lanes.claim(limit=10) == []
    assert turn(shop) == 0


def test_a_canceled_broadcast_with_a_claimed_message_ends(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.fed()
    (claim,) = lanes.claim(limit=10)

    move(shop, broadcast, services.cancel)

    assert shop.counts(broadcast) == {"canceled": 1}
    assert delivery.deliver(claim) == "stale"
    assert shop.counts(broadcast) == {"canceled": 1}
    assert not Message.objects.of(shop.organization).exclude(status="canceled").exists()


def test_a_broadcast_canceled_before_its_launch_never_begins(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    move(shop, broadcast, services.cancel)

    assert services.launch_due(now=timezone.now()) == 0
    assert shop.counts(broadcast) == {"canceled": 1}


MOVES: dict[str, Callable[..., Broadcast]] = {
    "pause": services.pause,
    "resume": services.resume,
    "cancel": services.cancel,
}


@pytest.mark.parametrize(
    ("status", "verb"),
    [
        ("queued", "resume"),
        ("sending", "resume"),
        ("paused", "pause"),
        *((ended, verb) for ended in ("completed", "canceled", "failed") for verb in MOVES),
    ],
)
def test_moves_that_a_state_does_not_allow(shop: Shop, status: str, verb: str) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    Broadcast.objects.of(shop.organization).update(status=status)

    with pytest.raises(InvalidTransition):
        move(shop, broadcast, MOVES[verb])

    assert shop.fresh(broadcast).status == status
    assert stream(shop).state == "running"


def test_moves_are_on_the_record(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()
    for verb in MOVES.values():
        move(shop, broadcast, verb)

    found: list[tuple[str, Any, str]] = list(
        Event.objects.filter(subject=ids.encode(ids.BROADCAST, broadcast.pk), actor_type="user")
        .order_by("id")
        .values_list("type", "data", "actor")
    )

    actor = ids.encode(ids.USER, shop.leader.pk)
    assert found[1:] == [
        ("broadcast.paused", {"from": "sending", "to": "paused"}, actor),
        ("broadcast.resumed", {"from": "paused", "to": "sending"}, actor),
        ("broadcast.canceled", {"from": "sending", "to": "canceled"}, actor),
    ]
