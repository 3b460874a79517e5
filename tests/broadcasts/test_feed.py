"""Launch, feed and completion: a little ahead of the lane, in order, each person once."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audience import consent
from audience.models import Contact
from broadcasts import content, feed, outlook, selectors, services
from broadcasts.content import Content
from broadcasts.models import Broadcast, Feed
from events import services as events
from events.models import Event
from messaging import db, lanes, recovery
from messaging.models import Channel, Message, Stream
from permissions import ids
from permissions.models import Membership, TeamMember
from tests.broadcasts.conftest import TEXTS, Shop

pytestmark = pytest.mark.django_db


def turn(shop: Shop, broadcast: Broadcast, **fields: Any) -> int:
    """Feed once more, as if the time for it had come."""
    Feed.objects.of(shop.organization).filter(broadcast=broadcast, feed_at__isnull=False).update(feed_at=timezone.now())
    return feed.run(now=timezone.now())


def trail(broadcast: Broadcast) -> list[tuple[str, dict[str, str]]]:
    subject = ids.encode(ids.BROADCAST, broadcast.pk)
    return list(Event.objects.filter(subject=subject).order_by("id").values_list("type", "data"))


def test_a_launch_starts_the_clock(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()

    assert services.launch_due(now=timezone.now()) == 1
    assert services.launch_due(now=timezone.now()) == 0

    broadcast = shop.fresh(broadcast)
    assert broadcast.status == "sending"
    assert broadcast.started_at is not None
    assert broadcast.expires_at == broadcast.started_at + timedelta(days=7)
    assert Stream.objects.of(shop.organization).get().expires_at == broadcast.expires_at


def test_once_no_more_new_people_are_taken_the_known_go_before_them(shop: Shop) -> None:
    shop.add("+5511999990001", "+5511999990002")
    known = Message.objects.create(
        organization=shop.organization, channel=shop.channel, contact=shop.contact("5511999990002"),
        direction="in", address="5511999990002", status="received",
    )  # fmt: skip
    broadcast = shop.launched()
    db.rows("UPDATE lanes SET used_new = cap_new WHERE channel_id = %s", [shop.channel.pk])

    assert turn(shop, broadcast) == 1
    assert turn(shop, broadcast) == 0

    (fed,) = Message.objects.of(shop.organization).filter(stream=broadcast.stream)
    assert fed.contact_id == known.contact_id
    Message.unscoped.filter(pk=fed.pk).update(status="sent")
    tally = selectors.tally(broadcast)
    wait = outlook.outlooks([shop.fresh(broadcast)], {broadcast.pk: tally}, timezone.now())[broadcast.pk].waiting_for
    assert wait is not None
    assert wait.code == "new_people_limit"
    db.rows("UPDATE lanes SET used_new = 0 WHERE channel_id = %s", [shop.channel.pk])
    assert turn(shop, broadcast) == 1


def test_messages_say_what_the_person_is_to_be_told(shop: Shop) -> None:
    shop.add("+5511999990001", name="Ana {a|b}", attributes={"curso": "{{nome}}"})
    texts = [f"{text} {{{{curso}}}}, {{{{preço}}}}" for text in TEXTS]
    broadcast = shop.fed(variations=texts, variables={"preço": "{1|2}"})

    (person,), (message,) = shop.recipients(broadcast), shop.messages(broadcast)

    assert (message.pk, message.address, message.contact_id) == (person.message_id, person.phone, person.contact_id)
    assert (message.status, message.origin, message.priority) == ("queued", "broadcast", Message.Priority.BROADCAST)
    assert "Ana {a|b}" in message.text
    assert message.text.endswith("{{nome}}, {1|2}")
    said = content.stored(broadcast.variations, broadcast.variables).text_for(
        broadcast_id=broadcast.pk, recipient_id=person.pk, person={"nome": "Ana {a|b}", "curso": "{{nome}}"}
    )
    assert message.text == said


def test_people_get_different_variations(shop: Shop) -> None:
    shop.add_people(40)
    broadcast = shop.launched()
    while turn(shop, broadcast):
        shop.settle(broadcast, "sent")

    texts = [message.text.replace(person.name, "") for message, person in _pairs(shop, broadcast)]

    assert len(texts) == 40
    assert len(set(texts)) >= 5


def _pairs(shop: Shop, broadcast: Broadcast) -> list[tuple[Message, Any]]:
    people = {person.message_id: person for person in shop.recipients(broadcast)}
    return [(message, people[message.pk]) for message in shop.messages(broadcast)]


def test_a_lane_is_fed_what_it_can_do_in_the_time_ahead(shop: Shop, settings: LazySettings) -> None:
    settings.FEED_AHEAD_SECONDS = 25.0
    shop.add_people(10)

    broadcast = shop.fed()

    # A broadcast message each 6.25 s on average.
    assert shop.counts(broadcast) == {"queued": 4, "pending": 6}
    assert turn(shop, broadcast) == 0


@pytest.mark.usefixtures("slow_lanes")
def test_a_lane_is_topped_up_in_the_order_of_the_audience(shop: Shop) -> None:
    shop.add_people(5)
    broadcast = shop.fed()
    assert shop.counts(broadcast) == {"queued": 2, "pending": 3}

    shop.settle(broadcast, "sent", 1)
    assert turn(shop, broadcast) == 1
    shop.settle(broadcast, "sent")
    assert turn(shop, broadcast) == 2

    assert [message.pk for message in shop.messages(broadcast)] == [
        person.message_id for person in shop.recipients(broadcast)
    ]


@pytest.mark.usefixtures("slow_lanes")
def test_a_feed_comes_round_again_before_its_lane_is_empty(shop: Shop, settings: LazySettings) -> None:
    settings.FEED_AHEAD_SECONDS = 10.0
    shop.add_people(5)
    now = timezone.now()
    broadcast = shop.compose(now=now)
    services.launch_due(now=now)

    assert feed.run(now=now) == 2
    shop.settle(broadcast, "sent")
    assert feed.run(now=now + timedelta(seconds=4.9)) == 0
    assert feed.run(now=now + timedelta(seconds=5)) == 2


def test_nobody_left_means_no_more_turns(shop: Shop) -> None:
    shop.add("+5511999990001")

    shop.fed()

    assert Feed.objects.of(shop.organization).get().feed_at is None


def test_a_broadcast_that_cannot_be_fed_holds_up_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.add("+5511999990001")
    broken, good = shop.launched(), shop.launched()
    right = content.stored

    def stored(texts: list[str], variables: dict[str, str]) -> Content:
        if variables:
            raise ValueError("a text of an older release")
        return right(texts, variables)

    Broadcast.objects.of(shop.organization).filter(pk=broken.pk).update(variables={"a": "b"})
    monkeypatch.setattr(content, "stored", stored)

    assert feed.run(now=timezone.now()) == 1
    assert (shop.counts(broken), shop.counts(good)) == ({"pending": 1}, {"queued": 1})


def test_nothing_due_costs_one_query_each(shop: Shop) -> None:
    shop.add("+5511999990001")
    shop.fed()

    for chore in (feed.run, services.launch_due, services.complete_finished):
        with CaptureQueriesContext(connection) as queries:
            chore(now=timezone.now())
        assert len(queries) == 1


@pytest.mark.usefixtures("slow_lanes")
def test_every_number_is_fed_its_own(shop: Shop) -> None:
    shop.add_people(6)
    second = shop.number()
    channels = [ids.encode(ids.CHANNEL, channel.pk) for channel in (shop.channel, second)]

    broadcast = shop.fed(channels=channels)

    assert Counter(message.channel_id for message in shop.messages(broadcast)) == {shop.channel.pk: 2, second.pk: 2}


@pytest.mark.usefixtures("slow_lanes")
def test_who_was_blocked_or_held_meanwhile_is_skipped(shop: Shop) -> None:
    shop.add_people(6)
    broadcast = shop.launched()
    for place in (0, 1):
        contact = shop.contact(f"55119{90000000 + place}")
        consent.block(contact=contact, reason="", actor=events.SYSTEM, now=timezone.now())
    consent.hold(contact=shop.contact("5511990000002"), reason="", actor=events.SYSTEM, now=timezone.now())

    assert feed.run(now=timezone.now()) == 2

    assert shop.states(broadcast) == [
        ("skipped", "contact_blocked"),
        ("skipped", "contact_blocked"),
        ("skipped", "contact_on_hold"),
        ("fed", ""),
        ("fed", ""),
        ("pending", ""),
    ]


@pytest.mark.usefixtures("slow_lanes")
def test_hundreds_left_out_in_a_row_do_not_end_the_broadcast(shop: Shop) -> None:
    shop.add_people(90)
    broadcast = shop.launched()
    out = [shop.contact(f"55119{90000000 + place}").pk for place in range(88)]
    Contact.objects.of(shop.organization).filter(pk__in=out).update(is_blocked=True)

    now = timezone.now()
    for _round in range(3):
        feed.run(now=now)
        services.complete_finished(now=now)

    assert shop.counts(broadcast) == {"queued": 2, "skipped": 88}
    assert shop.fresh(broadcast).status == "sending"


def test_who_lost_what_the_text_needs_is_skipped(shop: Shop) -> None:
    shop.add("+5511999990001", attributes={"curso": "Go"})
    shop.add("+5511999990002", attributes={"curso": "Go"})
    broadcast = shop.launched(variations=[f"{text} {{{{curso}}}}" for text in TEXTS])
    person = shop.contact("5511999990001")
    person.attributes = {}
    person.save()

    feed.run(now=timezone.now())

    assert shop.states(broadcast) == [("skipped", "missing_variable"), ("fed", "")]


def test_a_text_that_grew_too_long_is_not_sent(shop: Shop) -> None:
    shop.add("+5511999990001", attributes={"obs": "a"})
    broadcast = shop.launched(variations=[f"{text} {{{{obs}}}}" for text in TEXTS])
    Contact.objects.of(shop.organization).update(attributes={"obs": "a" * 4096})

    feed.run(now=timezone.now())

    assert shop.states(broadcast) == [("skipped", "text_too_long")]


def test_freeze_and_feed_measure_a_text_alike(shop: Shop) -> None:
    for place, number in enumerate((4095, 4096)):
        shop.add(f"+551199999000{place}", attributes={"obs": "😀" * number})
    broadcast = shop.fed(variations=[f"{mark}{{{{obs}}}}" for mark in "abcde"])

    assert shop.states(broadcast) == [("fed", ""), ("excluded", "text_too_long")]
    (message,) = shop.messages(broadcast)
    assert len(message.text) == 4096


def test_an_erased_person_gets_nothing(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()
    shop.contact("5511999990001").delete()

    feed.run(now=timezone.now())

    assert shop.states(broadcast) == [("skipped", "contact_erased")]


def test_attributes_that_are_no_object_stop_nobody_else(shop: Shop) -> None:
    shop.add("+5511999990001", "+5511999990002", attributes={"obs": "a"})
    texts = [f"{text} {{{{obs}}}}" for text in TEXTS]
    broadcast = shop.launched(variations=texts)
    Contact.objects.of(shop.organization).filter(identity="5511999990001").update(attributes=["obs"])

    feed.run(now=timezone.now())

    assert shop.states(broadcast) == [("skipped", "missing_variable"), ("fed", "")]
    assert [code for _state, code in shop.states(shop.compose(variations=texts))] == ["missing_variable", ""]


@pytest.mark.parametrize("change", ["leader", "member", "user"])
def test_an_owner_who_lost_the_right_pauses_the_launch(shop: Shop, change: str) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    _take_away(shop, change)

    assert services.launch_due(now=timezone.now()) == 0

    broadcast = shop.fresh(broadcast)
    assert (broadcast.status, broadcast.pause_code) == ("paused", "owner_without_right")
    assert trail(broadcast)[-1] == (
        "broadcast.paused",
        {"from": "queued", "to": "paused", "code": "owner_without_right"},
    )


@pytest.mark.usefixtures("slow_lanes")
def test_an_owner_who_lost_the_right_pauses_the_run(shop: Shop) -> None:
    shop.add_people(4)
    broadcast = shop.fed()
    _take_away(shop, "leader")

    assert turn(shop, broadcast) == 0

    assert shop.fresh(broadcast).pause_code == "owner_without_right"
    assert Stream.objects.of(shop.organization).get().state == "paused"


def test_an_owner_who_lost_the_right_pauses_what_is_wholly_fed(shop: Shop) -> None:
    shop.add_people(2)
    broadcast = shop.fed()
    assert not broadcast.feeds.exclude(feed_at=None).exists()
    assert services.pause_unentitled(now=timezone.now()) == 0
    _take_away(shop, "leader")

    assert services.pause_unentitled(now=timezone.now()) == 1

    assert shop.fresh(broadcast).pause_code == "owner_without_right"
    assert Stream.objects.of(shop.organization).get().state == "paused"
    assert services.pause_unentitled(now=timezone.now()) == 0


def test_the_fault_of_one_broadcast_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.add_people(1)
    broken, sound = shop.compose(), shop.compose()
    obstacle = services._obstacle

    def fails_for_one(broadcast: Broadcast, channels: list[Channel], now: datetime) -> object:
        if broadcast.pk == broken.pk:
            raise LookupError
        return obstacle(broadcast, channels, now)

    monkeypatch.setattr(services, "_obstacle", fails_for_one)
    assert services.launch_due(now=timezone.now()) == 1
    assert (shop.fresh(broken).status, shop.fresh(sound).status) == ("queued", "sending")


def _take_away(shop: Shop, what: str) -> None:
    if what == "leader":
        TeamMember.objects.of(shop.organization).update(status="INACTIVE")
    elif what == "member":
        Membership.objects.of(shop.organization).update(is_active=False)
    else:
        shop.leader.is_active = False
        shop.leader.save()


def test_a_number_archived_meanwhile_pauses_the_launch(shop: Shop) -> None:
    shop.add("+5511999990001")
    second = shop.number()
    broadcast = shop.compose(channels=[ids.encode(ids.CHANNEL, channel.pk) for channel in (shop.channel, second)])
    Channel.objects.of(shop.organization).filter(pk=second.pk).update(state=Channel.State.ARCHIVED)

    services.launch_due(now=timezone.now())

    assert shop.fresh(broadcast).pause_code == "channel_archived"


def test_a_broadcast_without_any_number_left_fails(shop: Shop) -> None:
    shop.add_people(2)
    broadcast = shop.compose()
    Channel.objects.of(shop.organization).update(state=Channel.State.ARCHIVED)

    assert services.launch_due(now=timezone.now()) == 0

    broadcast = shop.fresh(broadcast)
    assert (broadcast.status, broadcast.failure_code) == ("failed", "channel_archived")
    assert broadcast.finished_at is not None
    assert set(shop.states(broadcast)) == {("canceled", "channel_archived")}
    assert trail(broadcast)[-1] == ("broadcast.failed", {"from": "queued", "to": "failed", "code": "channel_archived"})


@pytest.mark.usefixtures("slow_lanes")
def test_it_is_completed_when_nothing_can_leave_any_more(shop: Shop) -> None:
    shop.add_people(3)
    broadcast = shop.fed()
    now = timezone.now()

    assert services.complete_finished(now=now) == 0
    shop.settle(broadcast, "sent")
    assert services.complete_finished(now=now) == 0
    turn(shop, broadcast)
    for status in ("queued", "claimed", "sending"):
        Message.objects.of(shop.organization).filter(status__in=["queued", "claimed", "sending"]).update(status=status)
        assert services.complete_finished(now=now) == 0
    Message.objects.of(shop.organization).filter(status="sending").update(status="in_doubt")

    assert services.complete_finished(now=now) == 1
    assert services.complete_finished(now=now) == 0

    broadcast = shop.fresh(broadcast)
    assert (broadcast.status, broadcast.finished_at) == ("completed", now)
    assert Stream.objects.of(shop.organization).get().state == "ended"
    assert trail(broadcast)[-1] == ("broadcast.completed", {"from": "sending", "to": "completed"})


def test_it_fails_at_once_where_everybody_is_left_out_later(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()
    Contact.objects.of(shop.organization).update(is_blocked=True)
    feed.run(now=timezone.now())

    assert services.complete_finished(now=timezone.now()) == 1
    broadcast = shop.fresh(broadcast)
    assert (broadcast.status, broadcast.failure_code) == ("failed", "nobody_left")
    assert shop.counts(broadcast) == {"skipped": 1}


@pytest.mark.usefixtures("slow_lanes")
@pytest.mark.parametrize("paused", [False, True])
def test_what_is_left_at_its_end_expires(shop: Shop, paused: bool) -> None:
    shop.add_people(3)
    broadcast = shop.fed()
    if paused:
        services.pause(broadcast=broadcast, actor=shop.actor, now=timezone.now())
    shop.settle(broadcast, "delivered", 1)
    long_ago = timezone.now() - timedelta(seconds=1)
    Broadcast.objects.of(shop.organization).update(expires_at=long_ago)
    Stream.objects.of(shop.organization).update(expires_at=long_ago)

    assert turn(shop, broadcast) == 0
    services.complete_finished(now=timezone.now())
    recovery.end_queued()
    services.complete_finished(now=timezone.now())

    assert shop.counts(broadcast) == {"delivered": 1, "expired": 2}
    assert shop.fresh(broadcast).status == "completed"


def test_feeding_wakes_the_lane(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.fed()

    (claim,) = lanes.claim(limit=10)

    assert claim.message_id == shop.recipients(broadcast)[0].message_id
