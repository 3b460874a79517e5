"""Two dispatchers and a person at once: each person's message once, and none after the cancel."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.utils import timezone

from broadcasts import feed, services
from broadcasts.models import Feed
from broadcasts.refusals import InvalidTransition
from events.models import Event
from messaging import lanes
from messaging.models import Message
from tests.broadcasts.conftest import Shop
from tests.together import together

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_dispatchers_feed_everybody_once(make_shop: Callable[[], Shop], settings: LazySettings) -> None:
    settings.FEED_AHEAD_SECONDS = 20.0
    shop = make_shop()
    shop.add_people(12)
    broadcast = shop.launched()

    fed = 0
    for _round in range(3):
        Feed.objects.of(shop.organization).filter(feed_at__isnull=False).update(feed_at=timezone.now())
        fed += sum(together(*[lambda: feed.run(now=timezone.now())] * 3))
        shop.settle(broadcast, "sent")

    messages = shop.messages(broadcast)
    assert fed == len(messages) == 12
    assert set(Counter(message.address for message in messages).values()) == {1}


def test_two_dispatchers_launch_and_complete_once(make_shop: Callable[[], Shop]) -> None:
    """B128: two sweeps at once."""
    shop = make_shop()
    shop.add("+5511999990001")
    broadcast = shop.compose()

    assert sorted(together(*[lambda: services.launch_due(now=timezone.now())] * 3)) == [0, 0, 1]
    feed.run(now=timezone.now())
    shop.settle(broadcast, "sent")
    assert sorted(together(*[lambda: services.complete_finished(now=timezone.now())] * 3)) == [0, 0, 1]


def test_a_broadcast_that_is_being_changed_holds_up_no_other(make_shop: Callable[[], Shop]) -> None:
    shop = make_shop()
    shop.add_people(2)
    held, other = shop.launched(), shop.launched()
    asked = threading.Event()
    answered = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            services.locked(held.pk, held.stream_id)
            asked.set()
            answered.wait(timeout=20)

    def sweep() -> int:
        asked.wait(timeout=20)
        try:
            return feed.run(now=timezone.now())
        finally:
            answered.set()

    _nothing, fed = together(hold, sweep)

    assert fed == 2
    assert shop.counts(other) == {"queued": 2}
    assert shop.counts(held) == {"pending": 2}
    assert feed.run(now=timezone.now()) == 2


def test_a_cancel_beside_feed_claim_and_pause_leaves_nothing_open(
    make_shop: Callable[[], Shop], settings: LazySettings
) -> None:
    settings.FEED_AHEAD_SECONDS = 20.0
    shop = make_shop()
    shop.add_people(8)
    broadcast = shop.launched()

    def pause() -> None:
        with suppress(InvalidTransition):
            services.pause(broadcast=broadcast, actor=shop.actor, now=timezone.now())

    together(
        lambda: feed.run(now=timezone.now()),
        lambda: lanes.claim(limit=10),
        pause,
        lambda: services.cancel(broadcast=broadcast, actor=shop.actor, now=timezone.now()),
    )

    assert shop.fresh(broadcast).status == "canceled"
    assert shop.counts(broadcast) == {"canceled": 8}
    assert not Message.objects.of(shop.organization).exclude(status="canceled").exists()
    assert feed.run(now=timezone.now()) == 0


def test_two_retries_beside_gate_and_completion_send_each_message_again_once(make_shop: Callable[[], Shop]) -> None:
    shop = make_shop()
    shop.add_people(6)
    broadcast = shop.fed()
    shop.settle(broadcast, "failed", error_code="not_on_whatsapp", error_sent="no")
    services.complete_finished(now=timezone.now())

    def retry() -> None:
        services.retry_failed(broadcast=broadcast, actor=shop.actor, now=timezone.now())

    together(
        retry,
        retry,
        lambda: lanes.claim(limit=10),
        lambda: services.complete_finished(now=timezone.now()),
    )

    counts = shop.counts(broadcast)
    assert counts == {"queued": 6}
    assert Event.objects.filter(type="broadcast.retried").count() == 1
    assert shop.fresh(broadcast).status == "sending"
