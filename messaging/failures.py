"""The timeline's word for an outbound message that failed, whoever told so. Written once per message and cause."""

from __future__ import annotations

from uuid import UUID

from events import services as events
from events.models import Event
from messaging import db
from messaging.models import Message
from permissions import ids

FAILED = "whatsapp_send_failed"


def record(message_id: UUID, *, code: str, cause: str = "") -> None:
    """Write it down in the caller's transaction. ``code``: the outside word; repeatable."""
    organization_id, contact_id = Message.unscoped.values_list("organization_id", "contact_id").get(pk=message_id)
    named = ids.encode(ids.MESSAGE, message_id)
    subject = ids.encode(ids.CONTACT, contact_id) if contact_id else named
    data = {"message_id": named, "code": code, **({"cause": cause} if cause else {})}
    # A settle is repeated where its commit was in doubt.
    if Event.objects.filter(subject=subject, type=FAILED, data=data).exists():
        return
    events.record(
        organization_id=organization_id,
        type=FAILED,
        subject=subject,
        actor=events.SYSTEM,
        now=db.database_now(),
        data=data,
    )
