"""Claims: in order, fair, one in flight per lane."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from events.models import Event
from messaging import db, delivery, lanes, services, streams
from messaging.models import Lane, Message
from permissions.models import User
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

PRIORITY = Message.Priority


def send_all(lab: Lab) -> list[str]:
    """Deliver until nothing can be claimed, as if every gap had passed; the texts in the order they left."""
    while True:
        lab.rested()
        claims = lanes.claim(limit=10)
        if not claims:
            return [outgoing.text for outgoing in lab.adapter.sent]
        for claim in claims:
            delivery.deliver(claim)


def test_humans_first_then_single_ones_then_broadcasts(lab: Lab) -> None:
    lab.feed(lab.stream(), 1)
    lab.queue("automático")
    lab.queue("pessoa", priority=PRIORITY.HUMAN)
    assert send_all(lab) == ["pessoa", "automático", "texto 0"]


def test_streams_of_a_lane_take_turns(lab: Lab) -> None:
    first, second = lab.stream(), lab.stream()
    ours = lab.feed(first, 3)
    lanes.claim(limit=1)
    theirs = lab.feed(second, 3)
    lab.lane(busy_until="clock_timestamp()")
    lanes.free_overdue()
    send_all(lab)
    order = [outgoing.message_id for outgoing in lab.adapter.sent]
    assert [order.index(message.pk) for message in ours] == [0, 2, 4]
    assert [order.index(message.pk) for message in theirs] == [1, 3, 5]


def test_a_later_page_does_not_overtake_who_waits(lab: Lab) -> None:
    first, second = lab.stream(), lab.stream()
    lab.feed(first, 2)
    lab.feed(second, 2)
    send_all(lab)
    more = lab.feed(first, 2, after=2)
    others = lab.feed(second, 2, after=2)
    order = [outgoing.text for outgoing in lab.adapter.sent]
    assert len(order) == 4
    send_all(lab)
    tail = [outgoing.message_id for outgoing in lab.adapter.sent[4:]]
    assert tail == [more[0].pk, others[0].pk, more[1].pk, others[1].pk]


def test_feeding_a_page_twice_does_nothing(lab: Lab) -> None:
    stream = lab.stream()
    page = [streams.Page(m.pk, None, m.address, m.text, m.position) for m in lab.feed(stream, 2)]
    assert streams.feed(stream=stream, channel_id=lab.channel.pk, page=page) == 0
    assert Message.objects.of(lab.organization).count() == 2


def test_one_in_flight_per_lane(lab: Lab) -> None:
    lab.queue("um")
    lab.queue("dois")
    lab.claim()
    lanes.wake([lab.channel.pk])
    assert lanes.claim(limit=10) == []


def test_a_wake_during_a_send_is_not_lost(lab: Lab) -> None:
    lab.queue("um")
    claim = lab.claim()
    lab.queue("dois", priority=PRIORITY.HUMAN)
    delivery.deliver(claim)
    lab.rested()
    assert lab.claim().message_id != claim.message_id


def test_a_lane_without_work_sleeps_and_is_woken_by_work(lab: Lab) -> None:
    lab.rested()
    assert lanes.claim(limit=10) == []
    assert lab.lane()["next_at"] is None
    lab.queue()
    assert lab.lane()["next_at"] is not None


def test_a_message_that_waits_sets_when_its_lane_is_looked_at(lab: Lab) -> None:
    message = lab.queue()
    later = db.database_now() + timedelta(minutes=3)
    Message.objects.of(lab.organization).update(not_before=later)
    assert lanes.claim(limit=10) == []
    assert lab.lane()["next_at"] == later
    other = lab.queue()
    assert lab.claim().message_id == other.pk != message.pk


def test_sleepers_over_work_are_woken(lab: Lab) -> None:
    lab.queue()
    lab.lane(next_at="NULL")
    assert lanes.wake_sleepers() == 1
    assert lab.claim()


def test_a_flood_of_one_organization_leaves_room_for_another(make_lab: Callable[..., Lab]) -> None:
    big, small = make_lab("grande"), make_lab("pequena")
    others = [
        services.create_channel(organization=big.organization, kind="waha", name=str(n), now=db.database_now())
        for n in range(5)
    ]
    for channel in others:
        services.set_connected(channel.pk, connected=True, now=db.database_now())
        services.queue_single(
            channel=channel, address="5511999990001", text="x", priority=PRIORITY.HUMAN, now=db.database_now()
        )
    big.queue()
    small.queue()
    db.rows(
        "UPDATE lanes SET next_at = clock_timestamp() - interval '1 hour' WHERE organization_id = %s",
        [big.organization.pk],
    )
    organizations = {claim.channel_id in {small.channel.pk} for claim in lanes.claim(limit=2)}
    assert organizations == {True, False}


def test_a_lane_is_written_by_statements_alone(lab: Lab) -> None:
    lane = Lane.objects.get(pk=lab.channel.pk)
    with pytest.raises(TypeError):
        lane.save()


def test_a_looser_limit_takes_a_super_admin_and_a_reason(lab: Lab) -> None:
    now = db.database_now()
    shopkeeper = User.objects.create_user("dona")
    root = User.objects.create_superuser("root")
    since = now.date() - timedelta(days=60)
    for by, reason in ((shopkeeper, "é meu"), (root, " ")):
        with pytest.raises(services.LoosensALimit):
            services.set_age(lab.channel.pk, since=since, reason=reason, by=by, now=now)
    services.set_age(lab.channel.pk, since=since, reason="número de 2019", by=root, now=now)
    event = Event.objects.get(type="limit.loosened")
    assert event.data["reason"] == "número de 2019"
    assert event.data["to"] == since.isoformat()
