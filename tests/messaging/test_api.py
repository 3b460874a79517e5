"""The contract of single messages over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from broadcasts import services as broadcasts
from broadcasts.models import Broadcast
from events import services as events
from events.models import Event
from messaging import db, delivery, receipts
from messaging.adapters import Ack, ChannelError, Fault, Outgoing, Sent
from messaging.models import Message
from permissions import ids
from permissions.models import Scope
from tests import factories
from tests.admin.conftest import Tenant, make_tenant
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

FIELDS = {
    "id", "message_id", "conversation_id", "channel_id", "direction", "type", "text", "payload", "status",
    "waiting_for", "wa_message_id", "sent_at", "delivered_at", "read_at", "edited_at", "revoked_at", "sent_via",
    "is_group", "error_code", "error_detail",
}  # fmt: skip


@dataclass
class Caller:
    key: Any
    browser: Client = field(default_factory=Client)

    def get(self, message: Message) -> Any:
        return self.browser.get(path(message), headers=factories.bearer(self.key))

    def retry(self, message: Message, **body: Any) -> Any:
        idempotency = body.pop("key", None)
        headers = factories.bearer(self.key) | ({"Idempotency-Key": idempotency} if idempotency else {})
        return self.browser.post(
            f"{path(message)}/retry", json.dumps(body), content_type="application/json", headers=headers
        )


def path(message: Message) -> str:
    return f"/api/v1/messages/{ids.encode(ids.MESSAGE, message.pk)}"


@pytest.fixture
def caller(lab: Lab) -> Caller:
    return Caller(factories.ApiKeyFactory.create(organization=lab.organization, scopes=list(Scope)))


def deliver(lab: Lab) -> Message:
    claim = lab.claim()
    delivery.deliver(claim)
    return Message.objects.of(lab.organization).get(pk=claim.message_id)


def doubt(lab: Lab) -> Message:
    """A message whose outcome is unknown."""

    def reset(_outgoing: Outgoing) -> str:
        raise ChannelError("connection_reset", sent=Sent.MAYBE, fault=Fault.GATEWAY)

    lab.queue()
    lab.adapter.on_send = reset
    message = deliver(lab)
    Message.unscoped.filter(pk=message.pk).update(status="in_doubt")
    lab.adapter.on_send = lambda outgoing: outgoing.provider_id
    lab.rested()
    message.refresh_from_db()
    return message


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["code"]


def test_a_message_is_shown(lab: Lab, caller: Caller) -> None:
    lab.queue("oi")
    waiting = Message.objects.of(lab.organization).get()
    body = caller.get(waiting).json()
    assert set(body) == FIELDS
    assert (body["status"], body["sent_via"], body["direction"], body["is_group"]) == ("sending", "api", "out", False)
    message = deliver(lab)
    body = caller.get(message).json()
    assert (body["status"], body["wa_message_id"]) == ("sent", message.provider_id)
    assert (body["edited_at"], body["revoked_at"], body["conversation_id"]) == (None, None, None)


def test_what_holds_it_is_said(lab: Lab, caller: Caller) -> None:
    message = lab.queue()
    lab.lane(connected="false")
    assert caller.get(message).json()["waiting_for"] == {"code": "channel_disconnected", "until": None}


def test_a_doubt_reads_failed_with_a_word_of_its_own(lab: Lab, caller: Caller) -> None:
    body = caller.get(doubt(lab)).json()
    assert (body["status"], body["error_code"]) == ("failed", "outcome_unknown")


def test_a_doubt_is_sent_again_at_the_callers_risk_under_its_first_id(lab: Lab, caller: Caller) -> None:
    message = doubt(lab)
    first_id = message.provider_id
    assert error(caller.retry(message)) == (409, "duplicate_risk")
    answer = caller.retry(message, accept_duplicate_risk=True, key="um")
    assert (answer.status_code, answer.json()["status"]) == (200, "sending")
    told = Event.objects.get(type="message.retried")
    assert told.data == {"from": "in_doubt", "to": "queued", "attempt": 1}
    assert told.actor == ids.encode(ids.API_KEY, caller.key.pk)
    again = caller.retry(message, accept_duplicate_risk=True, key="um")
    assert again["Idempotent-Replayed"] == "true"
    message = deliver(lab)
    assert (message.status, message.attempt, message.provider_id) == ("sent", 2, first_id)
    assert error(caller.retry(message, accept_duplicate_risk=True)) == (409, "invalid_transition")


def test_an_ack_that_failed_needs_the_acceptance_too(lab: Lab, caller: Caller) -> None:
    lab.queue()
    message = deliver(lab)
    receipts.apply_acks(lab.channel.pk, [Ack(str(message.provider_id), -1, db.database_now(), "ack_error")])
    assert error(caller.retry(message)) == (409, "duplicate_risk")
    lab.rested()
    assert caller.retry(message, accept_duplicate_risk=True).status_code == 200
    assert deliver(lab).status == "sent"


def test_what_certainly_was_not_sent_needs_none(lab: Lab, caller: Caller) -> None:
    def refuse(_outgoing: Outgoing) -> str:
        raise ChannelError("not_on_whatsapp", sent=Sent.NO, fault=Fault.RECIPIENT, permanent=True)

    lab.queue()
    lab.adapter.on_send = refuse
    message = deliver(lab)
    assert caller.retry(message).status_code == 200
    message.refresh_from_db()
    assert (message.status, message.doubted) == ("queued", False)


def test_each_needs_its_scope(lab: Lab) -> None:
    message = doubt(lab)
    reader = Caller(factories.ApiKeyFactory.create(organization=lab.organization, scopes=[Scope.MESSAGES_READ]))
    sender = Caller(factories.ApiKeyFactory.create(organization=lab.organization, scopes=[Scope.MESSAGES_SEND]))
    assert reader.get(message).status_code == 200
    assert error(reader.retry(message, accept_duplicate_risk=True)) == (403, "insufficient_scope")
    assert error(sender.get(message)) == (403, "insufficient_scope")


@pytest.fixture
def tenant(db: Any) -> Tenant:
    return make_tenant("MINHA")


def completed(tenant: Tenant, status: str = "in_doubt") -> tuple[Broadcast, Message]:
    """A broadcast that is over, with one message whose outcome is unknown."""
    broadcast = Broadcast.objects.of(tenant.organization).get()
    rows = Message.unscoped.filter(stream=broadcast.stream_id)
    rows.update(status=status, error_sent="maybe", attempt=1, provider_id="3EB0UM")
    broadcasts.complete_finished(now=db.database_now())
    broadcast.refresh_from_db()
    assert broadcast.status == Broadcast.Status.COMPLETED
    return broadcast, rows.first()  # type: ignore[return-value]


def test_a_completed_broadcast_goes_on_with_it(tenant: Tenant) -> None:
    broadcast, message = completed(tenant)
    past = db.database_now() - timedelta(hours=1)
    type(broadcast.stream).unscoped.filter(pk=broadcast.stream_id).update(expires_at=past)
    caller = Caller(
        factories.ApiKeyFactory.create(organization=tenant.organization, owner=tenant.leader, scopes=list(Scope))
    )
    before = db.database_now()
    assert caller.retry(message, accept_duplicate_risk=True).status_code == 200
    broadcast.refresh_from_db()
    assert (broadcast.status, broadcast.finished_at) == (Broadcast.Status.SENDING, None)
    assert broadcast.expires_at is not None
    assert before + timedelta(hours=24) <= broadcast.expires_at <= db.database_now() + timedelta(hours=24)


def test_under_a_canceled_broadcast_it_is_refused(tenant: Tenant) -> None:
    broadcast, message = completed(tenant)
    Broadcast.unscoped.filter(pk=broadcast.pk).update(status="sending")
    type(broadcast.stream).unscoped.filter(pk=broadcast.stream_id).update(state="running")
    broadcasts.cancel(broadcast=broadcast, actor=events.SYSTEM, now=db.database_now())
    caller = Caller(factories.ApiKeyFactory.create(organization=tenant.organization, scopes=list(Scope)))
    assert error(caller.retry(message, accept_duplicate_risk=True)) == (409, "invalid_transition")
    message.refresh_from_db()
    assert message.status == "in_doubt"
