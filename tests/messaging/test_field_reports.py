"""What people met with systems like this one, at the engine: workers, locks and databases that go away (B1xx)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from messaging import delivery, lanes, recovery
from messaging.adapters import Found, Outgoing
from messaging.faults import Point
from messaging.models import Message
from tests import virtual_time
from tests.messaging.conftest import NOON, Lab
from tests.virtual_time import Clock, Gateway

pytestmark = pytest.mark.django_db

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Killed(BaseException):
    """As kill -9: whoever meets it does nothing more."""


@pytest.fixture
def clock(db: None) -> Clock:
    return Clock.install(NOON)


@pytest.fixture
def gateway(clock: Clock, lab: Lab) -> Gateway:
    acting = Gateway(clock)
    lab.adapter.on_send = acting
    return acting


@pytest.fixture
def die_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Point], None]:
    """Have the worker die at a named point, once."""

    def arrange(point: Point) -> None:
        ahead = [point]

        def reach(reached: Point) -> None:
            if reached in ahead:
                ahead.remove(reached)
                raise Killed

        monkeypatch.setattr(delivery, "reach", reach)

    return arrange


def run(clock: Clock, lasting: timedelta) -> None:
    """The engine at work, sweeps included."""
    virtual_time.run(
        clock,
        until=clock.now() + lasting,
        chores=[recovery.look_up, recovery.doubt_unheard, recovery.end_queued],
        tick=30.0,
    )


def status(message: Message) -> str:
    message.refresh_from_db()
    return message.status


def test_a_worker_killed_before_its_gate_loses_nothing(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    """B124: the ring was taken and acknowledged, the task never ran."""
    message = lab.queue()
    assert [claim.message_id for claim in lanes.claim(limit=10)] == [message.pk]
    assert status(message) == "claimed"
    run(clock, HOUR)
    assert (status(message), len(gateway.acts)) == ("sent", 1)


@pytest.mark.parametrize("point", [Point.AFTER_ANSWER_READ, Point.BEFORE_SETTLE_COMMIT])
@pytest.mark.parametrize("acked", [True, False])
def test_a_worker_killed_between_the_answer_and_the_row_sends_nothing_again(
    lab: Lab, clock: Clock, gateway: Gateway, die_at: Callable[[Point], None], point: Point, acked: bool
) -> None:
    """B125, and B136, where the database went away instead. The report's "unknown" is our "in doubt"."""
    message, other = lab.queue("um"), lab.queue("dois")

    def find(outgoing: Outgoing) -> Found | None:
        assert outgoing.provider_id is not None
        return Found(outgoing.provider_id, 3) if acked else None

    lab.adapter.on_find = find
    die_at(point)
    with pytest.raises(Killed):
        run(clock, HOUR)
    assert (status(message), message.attempt) == ("sending", 1)
    run(clock, HOUR)
    assert status(message) == ("sent" if acked else "in_doubt")
    assert [outgoing.text for _at, outgoing in gateway.acts] == ["um", "dois"]
    assert status(other) == "sent"


def test_a_gateway_that_stalls_longer_than_a_claim_keeps_its_lane(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    """B137: the lock's time runs out while its holder still sends."""
    lab.queue("um")
    lab.queue("dois")

    def stall(outgoing: Outgoing) -> str | None:
        for _second in range(19):
            clock.advance(1)
            assert lanes.free_overdue() == 0
            assert lanes.claim(limit=10) == []
        lab.adapter.on_send = gateway
        return gateway(outgoing)

    lab.adapter.on_send = stall
    lab.lane(busy_until="clock_timestamp()")
    run(clock, MINUTE)
    assert [outgoing.text for _at, outgoing in gateway.acts] == ["um", "dois"]
    assert gateway.gaps[0] >= 1.2


def test_a_release_checks_whose_lease_it_is(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    """B137: who comes back late frees no lane that another holds by now."""
    first, second = lab.queue("um"), lab.queue("dois")
    (old,) = lanes.claim(limit=10)
    clock.advance(21)
    assert lanes.free_overdue() == 1
    clock.advance(5)
    (new,) = lanes.claim(limit=10)
    assert delivery.deliver(old) == "stale"
    assert lab.lane()["busy_message"] == new.message_id
    assert delivery.deliver(new) == "sent"
    assert {status(first), status(second)} == {"sent", "queued"}


def test_what_its_caller_gave_up_on_expires(lab: Lab, clock: Clock, gateway: Gateway) -> None:
    """B143: the number was away for three hours; validity is the message's own."""
    lanes.set_connected(lab.channel.pk, connected=False)
    urgent = lab.queue("código 1234", expires_at=NOON + timedelta(minutes=10))
    patient = lab.queue("fatura", expires_at=NOON + timedelta(hours=24))
    run(clock, 3 * HOUR)
    assert (status(urgent), status(patient)) == ("expired", "queued")
    lanes.set_connected(lab.channel.pk, connected=True)
    run(clock, HOUR)
    assert [outgoing.text for _at, outgoing in gateway.acts] == ["fatura"]
    assert (status(urgent), urgent.error_code) == ("expired", "expired")
