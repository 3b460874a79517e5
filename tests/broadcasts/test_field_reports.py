"""What people met with systems like this one: a broadcast from its post to its last ack, in virtual time (B1xx)."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from audience.models import Contact
from broadcasts import feed, services
from broadcasts.models import Broadcast, Recipient
from messaging import adapters, lanes, receipts
from messaging.adapters import Ack, ChannelError, Fault, Outgoing, Sent
from messaging.models import Message
from tests import virtual_time
from tests.broadcasts.conftest import Shop, url
from tests.messaging.conftest import NOON, ScriptedAdapter
from tests.together import together
from tests.virtual_time import Clock, Gateway

HOUR = timedelta(hours=1)


@pytest.fixture
def clock(db: None, monkeypatch: pytest.MonkeyPatch) -> Clock:
    installed = Clock.install(NOON)
    monkeypatch.setattr(timezone, "now", installed.now)
    return installed


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdapter:
    scripted = ScriptedAdapter()
    monkeypatch.setattr(adapters, "for_kind", lambda _kind: scripted)
    return scripted


@pytest.fixture
def gateway(clock: Clock, adapter: ScriptedAdapter, shop: Shop) -> Gateway:
    acting = Gateway(clock)
    adapter.on_send = acting
    return acting


@pytest.fixture
def going(clock: Clock) -> Callable[[timedelta], None]:
    """The whole engine at work for so long."""

    def go(lasting: timedelta) -> None:
        chores: list[Callable[[], int]] = [
            lambda: services.launch_due(now=clock.now()),
            lambda: feed.run(now=clock.now()),
            lambda: services.complete_finished(now=clock.now()),
        ]
        virtual_time.run(clock, until=clock.now() + lasting, chores=chores, tick=20.0)

    return go


def texts_of(shop: Shop, broadcast: Broadcast) -> dict[str, str]:
    return {message.address: message.text for message in shop.messages(broadcast)}


def test_each_person_gets_one_variation_whoever_sends_it(shop: Shop, gateway: Gateway, going: Any) -> None:
    """B107: several variations, ten people."""
    shop.add_people(10)
    broadcast = shop.compose()
    going(HOUR)
    assert Counter(outgoing.address for _at, outgoing in gateway.acts) == dict.fromkeys(texts_of(shop, broadcast), 1)
    assert {outgoing.address: outgoing.text for _at, outgoing in gateway.acts} == texts_of(shop, broadcast)


def test_a_retry_says_what_was_stored(shop: Shop, gateway: Gateway, adapter: ScriptedAdapter, going: Any) -> None:
    """B103: rendered once, whatever became of the person's name meanwhile."""
    shop.add_people(1)
    said: list[str] = []

    def fail_once(outgoing: Outgoing) -> str | None:
        said.append(outgoing.text)
        Contact.objects.of(shop.organization).update(name="Outro Nome")
        adapter.on_send = gateway
        raise ChannelError("waha_refused", sent=Sent.NO, fault=Fault.CONTENT)

    adapter.on_send = fail_once
    shop.compose()
    going(HOUR)
    assert said == [outgoing.text for _at, outgoing in gateway.acts]


def test_only_what_a_lane_can_do_soon_is_queued(shop: Shop, clock: Clock) -> None:
    """B133: the rest waits as rows of recipients; no task and no message holds the future."""
    shop.add_people(120)
    broadcast = shop.launched()
    feed.run(now=clock.now())
    assert len(shop.messages(broadcast)) <= 40 / 5 + 1
    assert shop.counts(broadcast)["pending"] >= 110


def test_a_page_of_people_who_opted_out_does_not_end_it(shop: Shop, gateway: Gateway, going: Any) -> None:
    """B145, B134: completed when the rows say that nothing is left, and not before."""
    shop.add_people(30)
    broadcast = shop.compose()
    phones = [person.phone for person in shop.recipients(broadcast)[:25]]
    Contact.objects.of(shop.organization).filter(identity__in=phones).update(is_blocked=True)
    going(timedelta(seconds=12))
    assert shop.fresh(broadcast).status == "sending"
    going(HOUR)
    assert shop.fresh(broadcast).status == "completed"
    assert shop.counts(broadcast) == {"sent": 5, "skipped": 25}


def test_nobody_left_to_write_to_ends_it_at_once(shop: Shop, gateway: Gateway, going: Any) -> None:
    """B146: it says so, with the reasons counted. The contract calls that "failed", where the report says finished."""
    shop.add_people(3)
    broadcast = shop.compose()
    Contact.objects.of(shop.organization).update(is_blocked=True)
    going(timedelta(seconds=30))
    ended = shop.fresh(broadcast)
    assert (ended.status, ended.failure_code, shop.counts(broadcast)) == ("failed", "nobody_left", {"skipped": 3})
    assert gateway.acts == []


def test_acks_three_times_each_and_shuffled_count_once(shop: Shop, gateway: Gateway, clock: Clock, going: Any) -> None:
    """B148, and B151: the list, the detail and the file say the same of who has read it."""
    shop.add_people(4)
    broadcast = shop.compose()
    going(HOUR)
    ids = [message.provider_id for message in shop.messages(broadcast)]
    acks = [Ack(each or "", rank, clock.now()) for each in ids for rank in (3, 4)]
    acks += [Ack(each or "", 5, clock.now()) for each in ids[:2]]
    shuffled = acks * 3
    random.Random(3).shuffle(shuffled)
    for start in range(0, len(shuffled), 5):
        receipts.apply_acks(shop.channel.pk, shuffled[start : start + 5])
    expected = {"sent_count": 4, "delivered_count": 4, "read_count": 2, "failed_count": 0}
    detail = shop.get(url(broadcast)).json()
    (listed,) = shop.get().json()["results"]
    for said in (detail, listed):
        assert {name: said[name] for name in expected} == expected
        assert (said["counts"]["read"], said["counts"]["delivered"], said["counts"]["sent"]) == (2, 2, 0)
    exported = b"".join(shop.get(f"{url(broadcast)}/recipients.csv").streaming_content).decode("utf-8-sig")
    assert Counter(row["status"] for row in csv.DictReader(io.StringIO(exported))) == {"read": 2, "delivered": 2}


def test_a_retry_of_three_failures_of_ten_is_three_attempts(
    shop: Shop, gateway: Gateway, adapter: ScriptedAdapter, clock: Clock, going: Any
) -> None:
    """B152: they are sent again, and count once."""
    shop.add_people(10)
    broadcast = shop.compose()
    refused = {person.phone for person in shop.recipients(broadcast)[:3]}

    def refuse(outgoing: Outgoing) -> str | None:
        if outgoing.address in refused:
            raise ChannelError("waha_rejected", sent=Sent.NO, fault=Fault.CONTENT, permanent=True)
        return gateway(outgoing)

    adapter.on_send = refuse
    going(HOUR)
    assert shop.counts(broadcast) == {"sent": 7, "failed": 3}
    adapter.on_send = gateway
    assert shop.move(broadcast, "retry-failed").json()["counts"]["queued"] == 3
    going(HOUR)
    assert shop.counts(broadcast) == {"sent": 10}
    assert Counter(outgoing.address for _at, outgoing in gateway.acts).most_common(1)[0][1] == 1
    assert Counter(message.attempt for message in shop.messages(broadcast)) == {1: 7, 2: 3}
    assert shop.fresh(broadcast).status == "completed"


def test_a_pause_at_four_of_ten_leaves_six(shop: Shop, gateway: Gateway, clock: Clock, going: Any) -> None:
    """B139: resume begins neither at the top nor behind what was fetched."""
    shop.add_people(10)
    broadcast = shop.compose()
    while len(gateway.acts) < 4:
        going(timedelta(seconds=5))
    before = len(gateway.acts)
    services.pause(broadcast=broadcast, actor=shop.actor, now=clock.now())
    going(HOUR)
    assert len(gateway.acts) == before
    services.resume(broadcast=broadcast, actor=shop.actor, now=clock.now())
    going(HOUR)
    assert [outgoing.address for _at, outgoing in gateway.acts] == [
        person.phone for person in shop.recipients(broadcast)
    ]


def test_a_number_that_is_lost_in_mid_run_burns_nobody(
    shop: Shop, gateway: Gateway, adapter: ScriptedAdapter, clock: Clock, going: Any
) -> None:
    """B140: the rest waits, says for what, and goes on."""
    shop.add_people(10)
    broadcast = shop.compose()

    def lost_at_the_fifth(outgoing: Outgoing) -> str | None:
        if len(gateway.acts) < 4:
            return gateway(outgoing)
        lanes.set_connected(shop.channel.pk, connected=False)
        raise ChannelError("session_not_working", sent=Sent.NO, fault=Fault.LANE)

    adapter.on_send = lost_at_the_fifth
    going(HOUR)
    counts = shop.counts(broadcast)
    assert (counts.pop("sent"), sum(counts.values()), counts.keys() <= {"queued", "pending"}) == (4, 6, True)
    assert shop.get(url(broadcast)).json()["waiting_for"]["code"] == "channel_disconnected"
    adapter.on_send = gateway
    lanes.set_connected(shop.channel.pk, connected=True)
    going(HOUR)
    assert shop.counts(broadcast) == {"sent": 10}
    assert {message.faults for message in shop.messages(broadcast)} == {0}


def test_a_schedule_that_nobody_looked_at_is_found(shop: Shop, gateway: Gateway, clock: Clock, going: Any) -> None:
    """B121: its time passes while nothing runs."""
    shop.add_people(1)
    broadcast = shop.compose(scheduled_at=clock.now() + HOUR)
    clock.advance(3 * 3600)
    going(timedelta(minutes=1))
    assert shop.fresh(broadcast).status == "completed"


@pytest.mark.parametrize("given", ["2026-12-10T09:00", "2026-12-10 09:00:00", "2026-12-10"])
def test_a_time_without_its_zone_is_refused(shop: Shop, clock: Clock, given: str) -> None:
    """B109: read as UTC it would leave three hours early."""
    shop.add_people(1)
    answer = shop.post(shop.body(scheduled_at=given))
    assert (answer.status_code, answer.json()["errors"][0]["attr"]) == (400, "scheduled_at")
    accepted = shop.post(shop.body(scheduled_at="2026-12-10T09:00:00-03:00")).json()
    stored = Broadcast.objects.of(shop.organization).get(public_id=accepted["public_id"]).scheduled_at
    assert stored == datetime.fromisoformat("2026-12-10T12:00:00+00:00")


@pytest.mark.django_db(transaction=True)
def test_counters_lose_nothing_to_each_other(make_shop: Callable[[], Shop], settings: LazySettings) -> None:
    """B149: four threads of fifty acks each; they are counted, never added up."""
    settings.FEED_AHEAD_SECONDS = 10_000.0
    shop = make_shop()
    shop.add_people(200)
    broadcast = shop.fed()
    for place, message in enumerate(shop.messages(broadcast)):
        Message.objects.of(shop.organization).filter(pk=message.pk).update(status="sent", provider_id=f"3EB0{place}")
        receipts.add_evidence(
            message_id=message.pk,
            channel_id=shop.channel.pk,
            provider_id=f"3EB0{place}",
            attempt=0,
            rank=3,
            at=timezone.now(),
        )

    def apply(part: int) -> Callable[[], int]:
        def work() -> int:
            batches = [Ack(f"3EB0{place}", 4, timezone.now()) for place in range(part, 200, 4)]
            return sum(receipts.apply_acks(shop.channel.pk, batches[start : start + 10]) for start in range(0, 50, 10))

        return work

    assert together(*[apply(part) for part in range(4)]) == [50] * 4
    assert shop.counts(broadcast) == {"delivered": 200}
    assert Recipient.objects.of(shop.organization).count() == 200
