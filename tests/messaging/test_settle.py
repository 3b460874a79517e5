"""What becomes of an attempt: forward only, nothing ambiguous repeated, the lane always freed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from audience.models import Contact
from events import services as events
from events.models import Event
from messaging import db, decisions, delivery, lanes, receipts, recovery, streams
from messaging.adapters import Ack, ChannelError, Echo, Fault, Found, Outgoing, Sent
from messaging.models import Message, Receipt
from permissions import ids
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db


def refuse(code: str, **facts: Any) -> Callable[[Outgoing], str | None]:
    def on_send(_outgoing: Outgoing) -> str | None:
        raise ChannelError(code, **facts)

    return on_send


NOT_CONNECTED = refuse("session_not_working", sent=Sent.NO, fault=Fault.LANE)
RESET = refuse("connection_reset", sent=Sent.MAYBE, fault=Fault.GATEWAY)
BUSY = refuse("rate_limited", sent=Sent.NO, fault=Fault.RECIPIENT)
BAD_NUMBER = refuse("not_on_whatsapp", sent=Sent.NO, fault=Fault.RECIPIENT, permanent=True)


def deliver(lab: Lab) -> Message:
    claim = lab.claim()
    delivery.deliver(claim)
    return Message.objects.of(lab.organization).get(pk=claim.message_id)


def ack(provider_id: str, rank: int, code: str = "") -> Ack:
    return Ack(provider_id, rank, db.database_now(), code)


def test_an_answer_makes_it_sent_and_frees_the_lane(lab: Lab) -> None:
    lab.queue()
    message = deliver(lab)
    assert message.status == "sent"
    assert message.sent_at is not None
    lane = lab.lane()
    assert (lane["busy_message"], lane["failures"]) == (None, 0)
    assert lane["next_at"] == lane["any_at"]


def test_the_gap_counts_from_the_end_of_the_call(lab: Lab) -> None:
    lab.queue()
    claim = lab.claim()

    def slow(outgoing: Outgoing) -> str | None:
        # The gateway took a minute: by the gate's reckoning the gap would be long over.
        lab.lane(any_at="clock_timestamp() - interval '1 minute'")
        return outgoing.provider_id

    lab.adapter.on_send = slow
    delivery.deliver(claim)
    assert lab.lane()["any_at"] >= db.database_now() + timedelta(seconds=1.1)


def test_a_fault_of_the_lane_burns_nothing(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = NOT_CONNECTED
    message = deliver(lab)
    assert (message.status, message.faults, message.attempt) == ("queued", 0, 1)
    assert (message.error_code, message.waiting_code) == ("session_not_working", "session_not_working")
    assert [entry["sent"] for entry in message.history] == ["no"]
    lane = lab.lane()
    assert (lane["failures"], lane["used"]) == (1, 0)
    assert lane["next_at"] > db.database_now()


def test_a_burst_of_faults_holds_the_lane_until_somebody_lets_go(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = NOT_CONNECTED
    for _ in range(5):
        deliver(lab)
        lab.rested()
    assert lab.lane()["holds"] == ["gateway_failing"]
    told = Event.objects.get(type="channel.status")
    assert told.data == {"hold": "gateway_failing", "to": "held"}
    assert lanes.claim(limit=10) == []
    assert lanes.set_hold(lab.channel.pk, "gateway_failing", on=False)
    # On trial: one more failure, and it is held again.
    deliver(lab)
    assert lab.lane()["holds"] == ["gateway_failing"]
    assert lanes.set_hold(lab.channel.pk, "gateway_failing", on=False)
    lab.rested()
    lab.adapter.on_send = lambda outgoing: outgoing.provider_id
    assert deliver(lab).status == "sent"


def test_a_fault_of_the_recipient_is_tried_five_times(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = BUSY
    for _ in range(5):
        message = deliver(lab)
        Message.objects.of(lab.organization).update(not_before=None)
        lab.rested()
    assert (message.status, message.faults, message.error_sent) == ("failed", 5, "no")
    assert len(lab.adapter.sent) == 5
    assert len(message.history) == 5


def test_a_permanent_fault_fails_at_once(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = BAD_NUMBER
    message = deliver(lab)
    assert (message.status, message.error_code, message.error_sent) == ("failed", "not_on_whatsapp", "no")
    assert lab.lane()["failures"] == 0


def test_an_ambiguous_answer_is_never_repeated(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = RESET
    message = deliver(lab)
    assert (message.status, message.error_code) == ("sending", "connection_reset")
    assert lab.lane()["busy_message"] is None
    lab.rested()
    assert lanes.claim(limit=10) == []
    assert lab.lane()["used"] == 1


def test_an_adapter_that_breaks_leaves_a_doubt_and_a_free_lane(lab: Lab) -> None:
    lab.queue()

    def broken(_outgoing: Outgoing) -> str:
        raise RuntimeError("o texto da pessoa")

    lab.adapter.on_send = broken
    message = deliver(lab)
    assert (message.status, message.error_code, message.error_detail) == (
        "sending",
        "adapter_error",
        "RuntimeError",
    )
    assert lab.lane()["busy_message"] is None


def test_without_evidence_it_is_in_doubt_after_five_minutes(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = RESET
    message = deliver(lab)
    assert recovery.doubt_unheard() == 0
    Message.objects.of(lab.organization).update(sending_at=db.database_now() - timedelta(minutes=5, seconds=1))
    assert recovery.doubt_unheard() == 1
    message.refresh_from_db()
    assert (message.status, message.error_sent) == ("in_doubt", "maybe")


def test_a_look_up_that_finds_it_is_evidence(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = RESET
    lab.adapter.on_find = lambda outgoing: Found(str(outgoing.provider_id), 4)
    message = deliver(lab)
    Message.objects.of(lab.organization).update(sending_at=db.database_now() - timedelta(minutes=6))
    assert recovery.look_up() == 1
    message.refresh_from_db()
    assert (message.status, message.error_code) == ("delivered", "")


@pytest.mark.parametrize("takes_ids", [True, False])
def test_an_ack_before_the_answer_is_not_lost(lab: Lab, takes_ids: bool) -> None:
    lab.adapter.takes_ids = takes_ids
    lab.queue()

    def early_ack(outgoing: Outgoing) -> str:
        provider_id = outgoing.provider_id or "3EB0EARLY"
        receipts.apply_acks(lab.channel.pk, [ack(provider_id, 4)])
        return provider_id

    lab.adapter.on_send = early_ack
    message = deliver(lab)
    assert message.status == "delivered"
    assert message.delivered_at is not None
    assert message.sent_at is not None


@pytest.mark.parametrize("takes_ids", [True, False])
def test_a_failing_ack_before_the_answer_is_not_lost(lab: Lab, takes_ids: bool) -> None:
    lab.adapter.takes_ids = takes_ids
    lab.queue()

    def early_ack(outgoing: Outgoing) -> str:
        provider_id = outgoing.provider_id or "3EB0EARLY"
        receipts.apply_acks(lab.channel.pk, [ack(provider_id, -1, "ack_error")])
        return provider_id

    lab.adapter.on_send = early_ack
    message = deliver(lab)
    assert (message.status, message.error_code, message.error_sent) == ("failed", "ack_error", "maybe")


@pytest.mark.parametrize(
    ("ranks", "status"),
    [
        ([3, 4, 5], "read"),
        ([5, 4, 3], "read"),
        ([5, 5, 5], "read"),
        ([4, 6], "played"),
        ([4, -1], "delivered"),
        ([-1], "failed"),
        ([-1, 3], "failed"),
        ([-1, 4], "delivered"),
    ],
)
def test_status_moves_forward_only(lab: Lab, ranks: list[int], status: str) -> None:
    lab.queue()
    message = deliver(lab)
    for rank in ranks:
        receipts.apply_acks(lab.channel.pk, [ack(str(message.provider_id), rank)])
    message.refresh_from_db()
    assert message.status == status
    before = Message.objects.of(lab.organization).values().get()
    receipts.apply_acks(lab.channel.pk, [ack(str(message.provider_id), rank) for rank in ranks])
    after = Message.objects.of(lab.organization).values().get()
    assert {**after, "updated_at": None} == {**before, "updated_at": None}


def test_read_implies_delivered_and_sent(lab: Lab) -> None:
    lab.queue()
    message = deliver(lab)
    receipts.apply_acks(lab.channel.pk, [ack(str(message.provider_id), 5)])
    message.refresh_from_db()
    assert message.delivered_at is not None
    assert message.read_at is not None


def test_acks_of_a_batch_are_applied_together_in_any_order(lab: Lab) -> None:
    messages = []
    for _ in range(5):
        lab.queue()
        messages.append(deliver(lab))
        lab.rested()
    acks = [ack(str(message.provider_id), rank) for rank in (5, 3, 4) for message in reversed(messages)]
    assert receipts.apply_acks(lab.channel.pk, [*acks, ack("3EB0NOBODY", 4)]) == 5
    assert set(Message.objects.of(lab.organization).values_list("status", flat=True)) == {"read"}
    assert Receipt.objects.get(provider_id="3EB0NOBODY").message is None


def test_late_evidence_takes_a_queued_retry_out(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = NOT_CONNECTED
    message = deliver(lab)
    first_id = lab.adapter.sent[0].provider_id
    assert message.status == "queued"
    receipts.apply_acks(lab.channel.pk, [ack(str(first_id), 4)])
    message.refresh_from_db()
    assert message.status == "delivered"
    lab.rested()
    assert lanes.claim(limit=10) == []


def test_evidence_takes_a_claimed_message_out_and_its_lane_is_freed(lab: Lab) -> None:
    lab.queue()
    lab.adapter.on_send = NOT_CONNECTED
    deliver(lab)
    lab.rested()
    claim = lab.claim()
    receipts.apply_acks(lab.channel.pk, [ack(str(lab.adapter.sent[0].provider_id), 3)])
    assert delivery.deliver(claim) == "stale"
    assert len(lab.adapter.sent) == 1
    assert lab.lane()["busy_message"] is None


def test_an_older_attempts_not_sent_changes_nothing_and_its_sent_is_evidence(lab: Lab) -> None:
    lab.queue()
    old = lab.claim()
    lab.adapter.on_send = NOT_CONNECTED
    delivery.deliver(old)
    lab.rested()
    lab.adapter.on_send = RESET
    message = deliver(lab)
    assert (message.status, message.attempt) == ("sending", 2)
    settle = "SELECT engine_settle(%s, %s, %s, 1, %s, %s, 'x', '', 0, 0, false, 5)"
    args = [message.pk, lab.channel.pk, old.lease]
    assert db.row(settle, [*args, "not_sent", None]) == ("sending",)
    assert db.row(settle, [*args, "sent", "3EB0OLD"]) == ("sent",)


def test_settle_is_repeatable(lab: Lab) -> None:
    lab.queue()
    claim = lab.claim()
    delivery.deliver(claim)
    before = lab.lane()
    settle = "SELECT engine_settle(%s, %s, %s, 1, 'sent', %s, '', '', 0, 0, false, 5)"
    provider_id = lab.adapter.sent[0].provider_id
    assert db.row(settle, [claim.message_id, lab.channel.pk, claim.lease, provider_id]) == ("sent",)
    assert lab.lane() == before
    assert Receipt.objects.count() == 1


def test_what_was_not_sent_under_a_canceled_stream_is_canceled(lab: Lab) -> None:
    stream = lab.stream()
    lab.feed(stream, 1)

    def canceled_meanwhile(outgoing: Outgoing) -> str:
        streams.cancel(streams.lock(stream.pk))
        raise ChannelError("session_not_working", sent=Sent.NO, fault=Fault.LANE)

    lab.adapter.on_send = canceled_meanwhile
    assert deliver(lab).status == "canceled"


def test_a_claim_never_begun_is_free_again_when_its_lease_ends(lab: Lab) -> None:
    message = lab.queue()
    lab.claim()
    assert lanes.free_overdue() == 0
    lab.lane(busy_until="clock_timestamp() - interval '1 second'")
    assert lanes.free_overdue() == 1
    message.refresh_from_db()
    assert (message.status, message.attempt) == ("queued", 0)
    lab.rested()
    assert deliver(lab).status == "sent"


def test_a_begun_one_waits_on_for_evidence_when_its_lease_ends(lab: Lab) -> None:
    lab.queue()
    claim = lab.claim()
    lab.adapter.on_send = RESET
    delivery.deliver(claim)
    db.rows("UPDATE messages SET lease = %s", [claim.lease])
    lab.lane(busy_message=f"'{claim.message_id}'", busy_until="clock_timestamp() - interval '1 second'")
    before = db.database_now()
    assert lanes.free_overdue() == 1
    assert Message.objects.of(lab.organization).get().status == "sending"
    lane = lab.lane()
    assert lane["busy_message"] is None
    assert lane["any_at"] >= before + timedelta(seconds=1.2)


def test_an_echo_is_matched_by_id_then_by_content(lab: Lab) -> None:
    lab.adapter.takes_ids = False
    lab.adapter.on_send = RESET
    lab.queue("oi, ana")
    message = deliver(lab)
    now = db.database_now()
    elsewhere = Echo("3EB0X", "5511988880002", "oi, ana", now)
    assert not receipts.match_echo(lab.channel.pk, elsewhere, [elsewhere.address])
    other_text = Echo("3EB0Y", message.address, "outra coisa", now)
    assert not receipts.match_echo(lab.channel.pk, other_text, [message.address])
    too_early = Echo("3EB0Z", message.address, "oi, ana", now - timedelta(minutes=1))
    assert not receipts.match_echo(lab.channel.pk, too_early, [message.address])
    echo = Echo("3EB0MINE", message.address, "oi, ana", now)
    assert receipts.match_echo(lab.channel.pk, echo, [message.address])
    message.refresh_from_db()
    assert (message.status, message.provider_id) == ("sent", "3EB0MINE")


def test_a_settle_absorbs_what_was_taken_for_a_message_of_the_phone(lab: Lab) -> None:
    lab.adapter.takes_ids = False
    lab.queue()

    def seen_as_external_first(outgoing: Outgoing) -> str:
        receipts.record_external(lab.channel, Echo("3EB0MINE", outgoing.address, "oi", db.database_now()))
        receipts.record_external(lab.channel, Echo("3EB0MINE", outgoing.address, "oi", db.database_now()))
        receipts.apply_acks(lab.channel.pk, [ack("3EB0MINE", 4)])
        return "3EB0MINE"

    lab.adapter.on_send = seen_as_external_first
    deliver(lab)
    message = Message.objects.of(lab.organization).get()
    assert (message.status, message.origin, message.provider_id) == ("delivered", "api", "3EB0MINE")


def test_queued_messages_of_canceled_and_expired_streams_end(lab: Lab) -> None:
    canceled, expired = lab.stream(), lab.stream()
    lab.feed(canceled, 1)
    lab.feed(expired, 1)
    db.rows("UPDATE streams SET state = 'canceled' WHERE id = %s", [canceled.pk])
    streams.start_clock(expired, db.database_now())
    assert recovery.end_queued() == 2
    by_stream = dict(Message.objects.of(lab.organization).values_list("stream", "status"))
    assert by_stream == {canceled.pk: "canceled", expired.pk: "expired"}


def test_each_failure_stands_in_the_timeline_once(lab: Lab) -> None:
    contact = Contact.objects.create(organization=lab.organization, identity="5511999990001")
    subject = ids.encode(ids.CONTACT, contact.pk)

    def timeline() -> list[str]:
        found = Event.objects.filter(subject=subject, type="whatsapp_send_failed").order_by("created_at")
        return [event.data["code"] for event in found]

    lab.queue(contact_id=contact.pk)
    lab.adapter.on_send = BAD_NUMBER
    deliver(lab)
    assert timeline() == ["not_on_whatsapp"]
    lab.rested()
    lab.queue(contact_id=contact.pk)
    lab.adapter.on_send = lambda outgoing: outgoing.provider_id
    message = deliver(lab)
    for _ in range(2):
        receipts.apply_acks(lab.channel.pk, [ack(str(message.provider_id), -1, "ack_error")])
    assert timeline() == ["not_on_whatsapp", "ack_error"]
    lab.rested()
    lab.queue(contact_id=contact.pk)
    lab.adapter.on_send = RESET
    deliver(lab)
    Message.objects.of(lab.organization).filter(status="sending").update(
        sending_at=db.database_now() - timedelta(minutes=6)
    )
    recovery.doubt_unheard()
    assert timeline() == ["not_on_whatsapp", "ack_error", "outcome_unknown"]


def test_evidence_of_a_failed_attempt_takes_no_retry_out(lab: Lab) -> None:
    lab.queue()
    message = deliver(lab)
    first_id = str(message.provider_id)
    receipts.apply_acks(lab.channel.pk, [ack(first_id, -1, "ack_error")])
    decisions.send_again(message.pk, accepts_duplicate=True, actor=events.SYSTEM, now=db.database_now())
    # An echo that comes late says "sent" of what is known to have failed since.
    echo = Echo(first_id, message.address, message.text, db.database_now())
    assert receipts.match_echo(lab.channel.pk, echo, [message.address])
    message.refresh_from_db()
    assert message.status == "queued"
    receipts.apply_acks(lab.channel.pk, [ack(first_id, 4)])
    message.refresh_from_db()
    assert (message.status, message.doubted) == ("delivered", False)
