"""Two people of a frozen audience turn out to be one: he gets one message of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Event as Signal
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from audience import merging
from audience.models import Contact
from broadcasts import feed, services
from broadcasts.models import Broadcast
from events import services as events
from messaging import db, gate, lanes, streams
from messaging.gate import Verdict
from messaging.models import Channel, Message, Stream
from permissions import ids
from tests.broadcasts.conftest import Shop
from tests.together import together

FIRST, SECOND = "5511999990001", "5511988880002"


def merge(shop: Shop) -> Contact:
    return merging.merge(
        organization=shop.organization,
        first=shop.contact(FIRST),
        second=shop.contact(SECOND),
        actor=events.SYSTEM,
        now=timezone.now(),
    )


def on_two_numbers(shop: Shop) -> Broadcast:
    """A launched broadcast to two people, one by each of two numbers."""
    shop.add(f"+{FIRST}", f"+{SECOND}")
    numbers = [shop.channel, shop.number()]
    return shop.launched(channels=[ids.encode(ids.CHANNEL, channel.pk) for channel in numbers])


def rest(channel: Channel) -> None:
    """As if the lane's message had been settled and its gaps had passed."""
    db.rows(
        "UPDATE lanes SET busy_message = NULL, busy_until = NULL, any_at = 'epoch', broadcast_at = 'epoch',"
        " next_at = 'epoch' WHERE channel_id = %s",
        [channel.pk],
    )


def ask_all() -> list[gate.Answer]:
    return [gate.ask(claim, None) for claim in lanes.claim(limit=10)]


@pytest.mark.django_db
class TestTheGate:
    def test_whoever_was_begun_with_stands_for_both(self, shop: Shop) -> None:
        shop.add(f"+{FIRST}", f"+{SECOND}")
        broadcast = shop.fed()
        keys = [person.person_key for person in shop.recipients(broadcast)]
        (claim,) = lanes.claim(limit=10)
        assert gate.ask(claim, None).verdict is Verdict.GO

        kept = merge(shop)
        rest(shop.channel)

        (answer,) = ask_all()
        assert (answer.verdict, answer.code) == (Verdict.NEVER, "duplicate")
        assert [(message.status, message.error_code) for message in shop.messages(broadcast)] == [
            ("sending", ""),
            ("skipped", "duplicate"),
        ]
        people = shop.recipients(broadcast)
        assert {person.contact_id for person in people} == {kept.pk}
        assert [person.person_key for person in people] == keys
        assert shop.counts(broadcast) == {"sending": 1, "skipped": 1}

    @pytest.mark.parametrize(
        ("status", "sent", "verdict"),
        [
            ("sent", "", "never"),
            ("delivered", "", "never"),
            ("read", "", "never"),
            ("played", "", "never"),
            ("in_doubt", "maybe", "never"),
            ("failed", "maybe", "never"),
            ("failed", "no", "go"),
            ("skipped", "", "go"),
            ("canceled", "", "go"),
            ("expired", "", "go"),
        ],
    )
    def test_only_what_may_have_left_stands_for_the_other(
        self, shop: Shop, status: str, sent: str, verdict: str
    ) -> None:
        shop.add(f"+{FIRST}", f"+{SECOND}")
        broadcast = shop.fed()
        shop.settle(broadcast, status, 1, error_sent=sent)
        merge(shop)

        (answer,) = ask_all()
        assert answer.verdict == verdict

    def test_another_broadcast_to_him_is_another_message(self, shop: Shop) -> None:
        shop.add(f"+{FIRST}")
        shop.settle(shop.fed(), "sent")
        shop.fed()

        (answer,) = ask_all()
        assert answer.verdict is Verdict.GO

    def test_a_recipient_merged_before_he_was_fed_waits_his_turn_and_is_skipped(
        self, shop: Shop, slow_lanes: None
    ) -> None:
        shop.add(f"+{FIRST}", "+5511999990009", f"+{SECOND}")
        broadcast = shop.fed()
        shop.settle(broadcast, "sent")
        merge(shop)

        broadcast.feeds.update(feed_at=timezone.now())
        assert feed.run(now=timezone.now()) == 1

        (answer,) = ask_all()
        assert answer.code == "duplicate"
        services.complete_finished(now=timezone.now())
        assert shop.fresh(broadcast).status == "completed"
        assert shop.counts(broadcast) == {"sent": 2, "skipped": 1}


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_two_gates_of_two_numbers_let_one_go(self, make_shop: Callable[[], Shop]) -> None:
        shop = make_shop()
        broadcast = on_two_numbers(shop)
        feed.run(now=timezone.now())
        merge(shop)
        claims = lanes.claim(limit=10)
        assert len(claims) == 2

        answers = together(*[lambda claim=claim: gate.ask(claim, None) for claim in claims])

        assert Counter((answer.verdict.value, answer.code) for answer in answers) == {
            ("go", ""): 1,
            ("never", "duplicate"): 1,
        }
        assert Counter(message.status for message in shop.messages(broadcast)) == {"sending": 1, "skipped": 1}

    def test_gates_and_the_merge_at_one_moment(self, make_shop: Callable[[], Shop], settings: Settings) -> None:
        """Whatever comes first: no deadlock, and a gate that judges after the merge sees what was begun."""
        # Room for the claims of all rounds, which nobody settles.
        settings.SEND_THREADS = 100
        for _round in range(8):
            shop = make_shop()
            broadcast = on_two_numbers(shop)
            feed.run(now=timezone.now())
            claims = lanes.claim(limit=10)

            together(partial(merge, shop), *[lambda claim=claim: gate.ask(claim, None) for claim in claims])

            messages = shop.messages(broadcast)
            assert {message.contact_id for message in messages} == {shop.contact(FIRST).pk}
            assert Message.Status.SENDING in {message.status for message in messages}
            assert {message.status for message in messages} <= {"sending", "skipped"}

    def test_a_gate_that_waits_for_a_merge_knows_its_outcome(self, make_shop: Callable[[], Shop]) -> None:
        shop = make_shop()
        broadcast = on_two_numbers(shop)
        feed.run(now=timezone.now())
        shop.settle(broadcast, "sent", 1)
        (claim,) = lanes.claim(limit=10)
        merged = Signal()

        def hold_the_merge() -> None:
            with transaction.atomic():
                merge(shop)
                merged.set()
                db.rows("SELECT pg_sleep(0.3)")

        def ask() -> gate.Answer:
            merged.wait(timeout=10)
            return gate.ask(claim, None)

        _nothing, answer = together(hold_the_merge, ask)

        assert (answer.verdict, answer.code) == (Verdict.NEVER, "duplicate")

    def test_a_merge_waits_for_a_freeze_and_moves_what_it_froze(self, make_shop: Callable[[], Shop]) -> None:
        shop = make_shop()
        shop.add(f"+{FIRST}", f"+{SECOND}")
        frozen = Signal()

        def compose() -> Broadcast:
            with transaction.atomic():
                broadcast = shop.compose()
                frozen.set()
                db.rows("SELECT pg_sleep(0.3)")
            return broadcast

        def merge_meanwhile() -> Contact:
            frozen.wait(timeout=10)
            return merge(shop)

        broadcast, kept = together(compose, merge_meanwhile)

        assert {person.contact_id for person in shop.recipients(broadcast)} == {kept.pk}
        assert len({person.person_key for person in shop.recipients(broadcast)}) == 2

    def test_feeds_and_merges_at_one_moment_lose_nobody(
        self, make_shop: Callable[[], Shop], settings: LazySettings
    ) -> None:
        for _round in range(6):
            shop = make_shop()
            broadcast = on_two_numbers(shop)

            together(lambda: feed.run(now=timezone.now()), partial(merge, shop))
            broadcast.feeds.update(feed_at=timezone.now())
            feed.run(now=timezone.now())

            assert [state for state, _code in shop.states(broadcast)] == ["fed", "fed"]
            assert {message.contact_id for message in shop.messages(broadcast)} == {shop.contact(FIRST).pk}


@pytest.mark.django_db
def test_a_merge_locks_the_streams_that_still_wait_for_either(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.add(f"+{FIRST}", f"+{SECOND}")
    shop.settle(shop.fed(), "sent")
    waiting = [shop.compose() for _ in range(2)]
    locked: list[UUID] = []
    lock = streams.lock

    def lock_and_tell(stream_id: UUID) -> Stream:
        locked.append(stream_id)
        return lock(stream_id)

    monkeypatch.setattr(streams, "lock", lock_and_tell)
    merge(shop)

    assert locked == sorted(broadcast.stream_id for broadcast in waiting)
