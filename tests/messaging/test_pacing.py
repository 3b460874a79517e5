"""The pace as the gateway's acts have it, over minutes and days of virtual time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from messaging import db, rules
from messaging.adapters import Outgoing
from messaging.models import Message
from tests import virtual_time
from tests.messaging.conftest import NOON, Lab
from tests.virtual_time import Clock, Gateway

pytestmark = pytest.mark.django_db

SINGLE, BROADCAST = rules.DEFAULTS.any_pace, rules.DEFAULTS.broadcast_pace
LONG = timedelta(hours=2)


@pytest.fixture
def clock(db: None) -> Clock:
    return Clock.install(NOON)


@pytest.fixture
def gateway(clock: Clock, lab: Lab) -> Gateway:
    """Acts at once."""
    acting = Gateway(clock)
    lab.adapter.on_send = acting
    return acting


@pytest.fixture
def slow(gateway: Gateway) -> Gateway:
    """Acts 0 to 10 s after the request, as it likes, and answers up to 5 s later."""
    chance = random.Random(7)
    gateway.before = lambda: chance.uniform(0, 10)
    gateway.after = lambda: chance.uniform(0, 5)
    return gateway


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def test_a_hundred_single_messages(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    for number in range(100):
        lab.queue(f"texto {number}")
        clock.advance(0.001)
    virtual_time.run(clock, until=NOON + LONG)
    assert len(gateway.acts) == 100
    assert min(gateway.gaps) >= SINGLE.gap
    assert sum(gateway.gaps) >= 160
    assert mean(gateway.gaps) == pytest.approx(SINGLE.gap + SINGLE.jitter / 2, rel=0.03)
    assert [outgoing.text for _at, outgoing in gateway.acts] == [f"texto {number}" for number in range(100)]


def test_a_broadcast_of_a_hundred(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    lab.feed(lab.stream(), 100)
    virtual_time.run(clock, until=NOON + LONG)
    assert len(gateway.acts) == 100
    assert min(gateway.gaps) >= BROADCAST.gap
    assert sum(gateway.gaps) >= 495
    assert mean(gateway.gaps) == pytest.approx(BROADCAST.gap + BROADCAST.jitter / 2, rel=0.03)


def test_whenever_the_gateway_acts_the_gaps_are_kept(lab: Lab, clock: Clock, slow: Gateway) -> None:
    for number in range(100):
        lab.queue(f"texto {number}")
    virtual_time.run(clock, until=NOON + LONG)
    assert len(slow.acts) == 100
    assert min(slow.gaps) >= SINGLE.gap
    # The pace counts from the end of a call, however long that took.
    assert min(slow.pauses) >= SINGLE.gap
    assert mean(slow.pauses) == pytest.approx(SINGLE.gap + SINGLE.jitter / 2, rel=0.03)


def test_whenever_the_gateway_acts_a_broadcast_keeps_its_gap(lab: Lab, clock: Clock, slow: Gateway) -> None:
    lab.feed(lab.stream(), 100)
    virtual_time.run(clock, until=NOON + LONG)
    assert len(slow.acts) == 100
    assert min(slow.gaps) >= BROADCAST.gap
    assert min(slow.pauses) >= BROADCAST.gap
    assert mean(slow.pauses) == pytest.approx(BROADCAST.gap + BROADCAST.jitter / 2, rel=0.03)


def test_a_human_overtakes_a_running_broadcast_within_one_gap(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    lab.feed(lab.stream(), 40)
    for minute in range(1, 4):
        asked = NOON + timedelta(minutes=minute)
        virtual_time.run(clock, until=asked)
        lab.queue(f"humano {minute}", priority=Message.Priority.HUMAN)
    virtual_time.run(clock, until=NOON + LONG)
    humans = {outgoing.text: at for at, outgoing in gateway.acts if outgoing.text.startswith("humano")}
    for minute in range(1, 4):
        waited = humans[f"humano {minute}"] - (NOON + timedelta(minutes=minute))
        assert timedelta() <= waited <= timedelta(seconds=SINGLE.gap + SINGLE.jitter)
    assert len(gateway.acts) == 43
    assert min(gateway.gaps) >= SINGLE.gap


def test_a_worker_that_dies_gives_no_gap_away(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    """It died past the gate, and its gateway acts up to the send deadline later: the next one leaves a gap after."""
    lab.queue("um")
    lab.queue("dois")

    class Killed(BaseException):
        """As kill -9: nothing is settled."""

    def act_and_die(outgoing: object) -> str | None:
        clock.advance(19.9)
        gateway.acts.append((clock.now(), outgoing))  # type: ignore[arg-type]
        lab.adapter.on_send = gateway
        raise Killed

    lab.adapter.on_send = act_and_die
    with pytest.raises(Killed):
        virtual_time.run(clock, until=NOON + LONG)
    virtual_time.run(clock, until=NOON + LONG)
    assert [outgoing.text for _at, outgoing in gateway.acts] == ["um", "dois"]
    assert gateway.gaps[0] >= SINGLE.gap


def test_typing_comes_out_of_no_gap_and_is_seen_by_nobody_who_opted_out(
    lab: Lab, clock: Clock, gateway: Gateway
) -> None:
    typed: list[tuple[datetime, str]] = []

    def typing(outgoing: Outgoing) -> None:
        typed.append((clock.now(), outgoing.text))
        clock.advance(2.0)

    lab.adapter.on_prepare = typing
    first, second, third = lab.feed(lab.stream(), 3)
    lab.block(second)
    virtual_time.run(clock, until=NOON + LONG)
    assert [text for _at, text in typed] == [first.text, third.text]
    assert [outgoing.text for _at, outgoing in gateway.acts] == [first.text, third.text]
    # The gap is over when typing begins; the gate then judges anew.
    assert gateway.gaps[0] >= BROADCAST.gap + 2.0


def test_who_opts_out_while_typing_is_seen_gets_nothing(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    (message,) = lab.feed(lab.stream(), 1)

    def opts_out(_outgoing: Outgoing) -> None:
        lab.block(message)

    lab.adapter.on_prepare = opts_out
    virtual_time.run(clock, until=NOON + LONG)
    assert gateway.acts == []
    message.refresh_from_db()
    assert (message.status, message.error_code) == ("skipped", "contact_blocked")


def test_a_hundred_take_160_seconds_wherever_in_a_deck_they_begin(lab: Lab) -> None:
    """Ninety-nine gaps: nine whole decks, and the shortest cards that two others can deal in their place."""
    decks = [sorted(db.row("SELECT engine_deck()")[0]) for _ in range(50)]
    for first in range(10):
        ends = min(sum(deck[:first]) for deck in decks) + min(sum(deck[: 9 - first]) for deck in decks)
        whole = 9 * min(sum(deck) for deck in decks)
        assert 99 * SINGLE.gap + SINGLE.jitter * (whole + ends) >= 160
