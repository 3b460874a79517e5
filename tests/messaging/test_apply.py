"""Raw events applied: in order, idempotently, poison apart, one applier per channel."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from messaging import apply, cron, db, delivery, intake, receipts, services
from messaging.adapters import Ack, ChannelError, Echo, Fault, Outgoing, ParsedEvent, Sent, UnreadableEvent, Update
from messaging.models import CronRun, Message, Receipt, WebhookEvent
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _plain_json(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies of these tests: {"acks": [[id, rank]], "echoes": [[id, address, text]]}, "poison" or garbage."""

    def parse(body: bytes, *, channel_id: UUID, received_at: datetime) -> ParsedEvent:
        try:
            event = json.loads(body)
        except ValueError as error:
            raise UnreadableEvent("not JSON") from error
        if event == "poison":
            raise LookupError("o texto da pessoa")
        updates: list[Update] = [Ack(provider_id, rank, received_at) for provider_id, rank in event.get("acks", [])]
        updates += [Echo(name, chat, text, received_at) for name, chat, text in event.get("echoes", [])]
        return ParsedEvent("test", updates)

    monkeypatch.setattr(lab.adapter, "parse_webhook", parse)


@pytest.fixture
def post(lab: Lab) -> Callable[[Any], WebhookEvent]:
    def post(event: Any) -> WebhookEvent:
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        event_id = intake.store(
            channel=lab.channel, body=body, headers={"X-Api-Key": "s"}, request_id="r", now=db.database_now()
        )
        return WebhookEvent.objects.get(pk=event_id)

    return post


def applied(lab: Lab, *, after: timedelta = timedelta()) -> int:
    return apply.apply_channel(lab.channel.pk, now=db.database_now() + after)


def sent(lab: Lab) -> Message:
    lab.queue()
    claim = lab.claim()
    delivery.deliver(claim)
    lab.rested()
    return Message.objects.of(lab.organization).get(pk=claim.message_id)


def test_the_raw_row_is_kept_byte_for_byte_and_without_secrets(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    event = post(b'{"a": "\xff"}')
    event.refresh_from_db()
    assert bytes(event.body) == b'{"a": "\xff"}'
    assert (event.headers, event.organization_id, event.state) == ({}, lab.organization.pk, "received")


def test_acks_are_applied_once_whatever_the_order(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    message = sent(lab)
    for rank in (5, 4, 3, 5):
        post({"acks": [[message.provider_id, rank]]})
    assert applied(lab) == 4
    assert applied(lab) == 0
    message.refresh_from_db()
    assert message.status == "read"
    assert set(WebhookEvent.objects.values_list("state", "attempts")) == {("applied", 1)}


def test_channels_of_an_organization_are_applied_together(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    second = services.create_channel(organization=lab.organization, kind="waha", name="Loja", now=db.database_now())
    message = sent(lab)
    post({"echoes": [[message.provider_id, message.address, message.text]]})
    post({"acks": [[message.provider_id, 4]]})
    for name in ("3EB0A", "3EB0B"):
        intake.store(
            channel=second,
            body=json.dumps({"acks": [[name, 3]]}).encode(),
            headers={},
            request_id="r",
            now=db.database_now(),
        )
    assert apply.apply_organization(lab.organization.pk, now=db.database_now()) == apply.Applied(4, [])
    assert apply.apply_organization(lab.organization.pk, now=db.database_now()) == apply.Applied(0, [])
    message.refresh_from_db()
    assert message.status == "delivered"
    assert set(Receipt.objects.filter(channel=second).values_list("provider_id", "rank")) == {
        ("3EB0A", 3),
        ("3EB0B", 3),
    }
    assert set(WebhookEvent.objects.values_list("state", flat=True)) == {"applied"}


def test_more_events_than_a_batch_takes_are_applied_in_turns(
    lab: Lab, post: Callable[[Any], WebhookEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "BATCH", 2)
    for _ in range(5):
        post({"acks": [["3EB0A", 4]]})
    assert applied(lab) == 5


def test_the_ids_of_one_channel_say_nothing_of_another(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    message = sent(lab)
    second = services.create_channel(organization=lab.organization, kind="waha", name="Loja", now=db.database_now())
    assert receipts.apply_all([(second.pk, Ack(str(message.provider_id), 4, db.database_now()))]) == 0
    assert receipts.known([(second.pk, str(message.provider_id)), (lab.channel.pk, str(message.provider_id))]) == {
        (lab.channel.pk, message.provider_id)
    }


def test_poison_is_set_apart_and_the_others_go_on(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    message = sent(lab)
    poison, garbage = post("poison"), post(b"\xff")
    post({"acks": [[message.provider_id, 4]]})
    applied(lab)
    message.refresh_from_db()
    assert message.status == "delivered"
    poison.refresh_from_db()
    garbage.refresh_from_db()
    assert (poison.state, poison.error) == ("error", "LookupError")
    assert (garbage.state, garbage.error) == ("error", "unreadable: not JSON")


def test_an_ack_that_postgresql_refuses_does_not_hold_up_its_batch(
    lab: Lab, post: Callable[[Any], WebhookEvent]
) -> None:
    message = sent(lab)
    bad = post({"acks": [["3EB0\0", 4]]})
    post({"acks": [[message.provider_id, 4]]})
    applied(lab)
    message.refresh_from_db()
    bad.refresh_from_db()
    assert message.status == "delivered"
    assert bad.state == "error"


def test_after_twenty_tries_it_is_dead_and_no_longer_tried(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    event = post("poison")
    for attempt in range(1, 21):
        assert applied(lab, after=timedelta(hours=attempt)) == 1
    event.refresh_from_db()
    assert (event.state, event.attempts, event.next_try_at) == ("dead", 20, None)
    assert applied(lab, after=timedelta(days=2)) == 0


def test_what_has_no_effect_yet_is_kept_for_a_later_version(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    event = post({})
    applied(lab)
    event.refresh_from_db()
    assert (event.state, event.event_type) == ("ignored", "test")


def test_an_echo_that_may_be_ours_waits_while_the_lane_is_busy(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    lab.adapter.takes_ids = False
    lab.queue("oi")
    claim = lab.claim()
    address = Message.objects.of(lab.organization).get().address
    event = post({"echoes": [["3EB0E", address, "oi, com link encurtado"]]})
    applied(lab)
    event.refresh_from_db()
    assert event.state == "received"
    assert event.next_try_at is not None
    lab.adapter.on_send = lambda _outgoing: "3EB0E"
    delivery.deliver(claim)
    applied(lab, after=timedelta(seconds=3))
    event.refresh_from_db()
    assert event.state == "applied"
    message = Message.objects.of(lab.organization).get()
    assert (message.status, message.origin, message.provider_id) == ("sent", "api", "3EB0E")


def test_an_echo_nobody_claims_was_written_on_the_phone(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    post({"echoes": [["3EB0P", "5511999990001@c.us", "escrito no celular"]]})
    post({"echoes": [["3EB0P", "5511999990001@c.us", "escrito no celular"]]})
    applied(lab)
    message = Message.objects.of(lab.organization).get()
    assert (message.origin, message.status, message.provider_id) == ("external_device", "sent", "3EB0P")


def test_a_busy_lane_makes_an_echo_wait_only_so_long(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    lab.queue("oi")
    lab.claim()
    post({"echoes": [["3EB0P", "5511999990009@c.us", "outra conversa"]]})
    applied(lab, after=timedelta(seconds=settings.ECHO_PATIENCE_SECONDS + 1))
    assert Message.objects.of(lab.organization).filter(origin="external_device").count() == 1


def test_an_echo_settles_what_had_no_answer(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    def reset(_outgoing: Outgoing) -> str:
        raise ChannelError("connection_reset", sent=Sent.MAYBE, fault=Fault.GATEWAY)

    lab.adapter.takes_ids = False
    lab.adapter.on_send = reset
    message = sent(lab)
    post({"acks": [["3EB0E", 4]]})
    post({"echoes": [["3EB0E", message.address, message.text]]})
    applied(lab)
    message.refresh_from_db()
    assert (message.status, message.provider_id) == ("delivered", "3EB0E")


def test_runs_are_rows_and_one_failing_step_stops_no_other() -> None:
    def broken() -> int:
        raise RuntimeError("o texto da pessoa")

    run = cron.run("test", ("first", broken), ("second", lambda: 3))
    assert run is not None
    row = CronRun.objects.get(name="test")
    assert (row.items_processed, row.errors) == (3, ["first: RuntimeError"])
    assert row.finished_at is not None
    assert cron.run("test", ("again", lambda: 1)) is not None


def test_old_events_are_dropped_in_batches_and_never_before_they_are_applied(
    lab: Lab, post: Callable[[Any], WebhookEvent]
) -> None:
    old, waiting, fresh = post({}), post("poison"), post({})
    applied(lab)
    WebhookEvent.objects.filter(pk__in=[old.pk, waiting.pk]).update(received_at=db.database_now() - timedelta(days=91))
    assert cron.drop_old_events(90, batch=1) == 1
    assert set(WebhookEvent.objects.values_list("pk", flat=True)) == {waiting.pk, fresh.pk}


def test_retention_is_a_run_with_both_its_steps(lab: Lab, post: Callable[[Any], WebhookEvent]) -> None:
    old = post({})
    applied(lab)
    WebhookEvent.objects.update(received_at=db.database_now() - timedelta(days=91))
    run = cron.drop_what_is_old(now=db.database_now())
    assert run is not None
    assert (run.items_processed, run.errors) == (1, [])
    assert not WebhookEvent.objects.filter(pk=old.pk).exists()


def test_old_events_go_in_as_many_batches_as_it_takes_and_dead_ones_stay(
    lab: Lab, post: Callable[[Any], WebhookEvent]
) -> None:
    for _ in range(5):
        post({})
    dead = post("poison")
    applied(lab)
    WebhookEvent.objects.filter(pk=dead.pk).update(state="dead", next_try_at=None)
    WebhookEvent.objects.update(received_at=db.database_now() - timedelta(days=91))
    assert cron.drop_old_events(90, batch=2) == 5
    assert set(WebhookEvent.objects.values_list("pk", flat=True)) == {dead.pk}


def test_acks_that_never_met_a_message_are_dropped_after_their_time(
    lab: Lab, post: Callable[[Any], WebhookEvent]
) -> None:
    message = sent(lab)
    post({"acks": [["3EB0OLD", 4], ["3EB0NEW", 4]]})
    applied(lab)
    old = db.database_now() - timedelta(days=31)
    Receipt.objects.filter(provider_id__in=["3EB0OLD", message.provider_id]).update(created_at=old)
    assert cron.drop_unmatched_receipts() == 1
    assert set(Receipt.objects.values_list("provider_id", flat=True)) == {"3EB0NEW", message.provider_id}
