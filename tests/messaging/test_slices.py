"""Numbers that are not serial: slices at the number's rate, with every promise kept for each message."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from audience.models import Contact
from messaging import db, lanes, slices
from messaging.adapters import ChannelError, Fault, Outgoing, Sent
from messaging.lanes import Slice
from messaging.models import Lane, Message, Receipt
from permissions import isolation
from permissions.isolation import Sweep
from tests.messaging.conftest import Lab, ScriptedAdapter

pytestmark = pytest.mark.django_db(transaction=True)
RATE = 40.0
# Nine tenths of the rate, for half a second.
SLICE = 18


@pytest.fixture
def lab(adapter: ScriptedAdapter, make_lab: Callable[..., Lab]) -> Lab:
    adapter.rate = RATE
    found = make_lab()
    lanes.refresh_figures(found.channel.pk)
    found.lane(cap_soft="100000", cap_hard="100000", cap_new="100000", barred="''")
    return found


def reserved(lab: Lab) -> Slice:
    lab.lane(next_at="clock_timestamp()")
    (found,) = lanes.reserve(limit=10)
    return found


def statuses(lab: Lab) -> Counter[str]:
    return Counter(Message.objects.of(lab.organization).values_list("status", flat=True))


def test_a_slice_is_half_a_second_of_nine_tenths_of_the_rate(lab: Lab) -> None:
    messages = lab.feed(lab.stream(), SLICE + 5)
    assert lanes.claim(limit=10) == []
    found = reserved(lab)
    assert found.message_ids == tuple(message.pk for message in messages[:SLICE])
    assert lanes.reserve(limit=10) == []
    assert statuses(lab) == {"claimed": SLICE, "queued": 5}


def test_no_more_than_two_wait_for_a_worker(lab: Lab) -> None:
    lab.feed(lab.stream(), 3 * SLICE)
    for _ in range(5):
        lab.lane(next_at="clock_timestamp()", any_at="clock_timestamp() - interval '1 second'")
        lanes.reserve(limit=10)
    assert statuses(lab) == {"claimed": 2 * SLICE, "queued": SLICE}


def test_each_leaves_after_its_gate_was_committed_and_at_the_rate(lab: Lab) -> None:
    lab.feed(lab.stream(), SLICE)
    seen: list[tuple[float, str]] = []

    def send(outgoing: Outgoing) -> str | None:
        try:
            with isolation.across_tenants(Sweep.COMMAND, "test"):
                status = Message.unscoped.values_list("status", flat=True).get(pk=outgoing.message_id)
        finally:
            connection.close()
        seen.append((time.monotonic(), status))
        return outgoing.provider_id

    lab.adapter.on_send = send
    assert slices.deliver(reserved(lab)) == {"sent": SLICE}
    assert {status for _at, status in seen} == {"sending"}
    times = sorted(at for at, _status in seen)
    assert times[-1] - times[0] >= 0.9 * (SLICE - 1) / (RATE * 0.9)
    assert statuses(lab) == {"sent": SLICE}
    assert Receipt.objects.filter(rank=3, attempt=1).count() == SLICE
    assert Lane.objects.get(pk=lab.channel.pk).used == SLICE


def test_a_slice_that_is_late_does_not_leave_with_the_next(lab: Lab) -> None:
    lab.feed(lab.stream(), 2)
    found = reserved(lab)
    lab.lane(broadcast_at="clock_timestamp() + interval '3 seconds'")
    assert slices.deliver(found) == {"lane_later": 2}
    assert (statuses(lab), lab.adapter.sent) == ({"queued": 2}, [])


def test_delivering_twice_sends_once(lab: Lab) -> None:
    lab.feed(lab.stream(), 3)
    found = reserved(lab)
    slices.deliver(found)
    assert slices.deliver(found) == {}
    assert len(lab.adapter.sent) == 3


def test_what_changed_since_the_reservation_is_seen_at_the_gate(lab: Lab) -> None:
    running, paused = lab.stream(), lab.stream()
    blocked, fine = lab.feed(running, 2)
    assert blocked.contact_id is not None
    (waits,) = lab.feed(paused, 1, after=2)
    found = reserved(lab)
    Contact.unscoped.filter(pk=blocked.contact_id).update(is_blocked=True)
    db.rows("UPDATE streams SET state = 'paused' WHERE id = %s", [paused.pk])
    assert slices.deliver(found) == {"never": 1, "stream_later": 1, "sent": 1}
    assert [outgoing.message_id for outgoing in lab.adapter.sent] == [fine.pk]
    for message in (blocked, waits):
        message.refresh_from_db()
    assert (blocked.status, blocked.error_code) == ("skipped", "contact_blocked")
    assert (waits.status, waits.waiting_code) == ("queued", "broadcast_paused")


def test_two_that_are_one_person_by_now_get_one(lab: Lab) -> None:
    first, second = lab.feed(lab.stream(), 2)
    Message.objects.of(lab.organization).filter(pk=second.pk).update(contact_id=first.contact_id)
    assert slices.deliver(reserved(lab)) == {"sent": 1, "never": 1}
    second.refresh_from_db()
    assert (second.status, second.error_code) == ("skipped", "duplicate")


def test_a_cap_holds_within_a_slice(lab: Lab) -> None:
    lab.feed(lab.stream(), 5)
    lab.lane(cap_hard="3", cap_soft="2")
    assert slices.deliver(reserved(lab)) == {"sent": 2, "lane_later": 3}


def test_each_error_comes_to_what_it_comes_to_alone(lab: Lab) -> None:
    maybe, refused, wrong, fine = lab.feed(lab.stream(), 4)
    errors = {
        maybe.pk: ChannelError("reset", sent=Sent.MAYBE, fault=Fault.GATEWAY),
        refused.pk: ChannelError("refused", sent=Sent.NO, fault=Fault.GATEWAY),
        wrong.pk: ChannelError("invalid_chat_id", sent=Sent.NO, fault=Fault.RECIPIENT, permanent=True),
    }

    def send(outgoing: Outgoing) -> str | None:
        if outgoing.message_id in errors:
            raise errors[outgoing.message_id]
        return outgoing.provider_id

    lab.adapter.on_send = send
    slices.deliver(reserved(lab))
    for message in (maybe, refused, wrong, fine):
        message.refresh_from_db()
    assert [(message.status, message.error_sent) for message in (maybe, refused, wrong, fine)] == [
        ("sending", "maybe"),
        ("queued", "no"),
        ("failed", "no"),
        ("sent", ""),
    ]


def test_a_slice_that_nobody_began_is_free_when_its_lease_ends(lab: Lab) -> None:
    lab.feed(lab.stream(), 3)
    found = reserved(lab)
    assert lanes.free_overdue() == 0
    Message.objects.of(lab.organization).update(updated_at=db.database_now() - timedelta(minutes=1))
    assert lanes.free_overdue() == 1
    assert statuses(lab) == {"queued": 3}
    again = reserved(lab)
    assert slices.deliver(found) == {}
    assert slices.deliver(again) == {"sent": 3}


def test_what_waited_over_two_seconds_is_not_sent(lab: Lab, settings: Settings) -> None:
    lab.feed(lab.stream(), 2)
    settings.FIRST_BYTE_SECONDS = -1
    slices.deliver(reserved(lab))
    assert (statuses(lab), lab.adapter.sent) == ({"queued": 2}, [])
