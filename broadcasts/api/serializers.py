"""Bodies of broadcasts: what is taken, and what is answered."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from broadcasts import selectors
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast, Recipient
from broadcasts.outlook import Outlook
from broadcasts.selectors import Tally
from messaging.models import Message
from permissions import ids
from permissions.api.serializers import StrictSerializer, TextField

State = Recipient.State

# What a row says of its end; a message that goes on has no error yet, whatever an attempt met.
_ENDED_BADLY = frozenset({"failed", "skipped", "canceled", "expired"})


class NothingSerializer(StrictSerializer):
    """A body without fields."""


class DraftSerializer(StrictSerializer):
    """``POST /broadcasts``. Which fields go together is judged by the rules (422), their types here (400)."""

    group_id = TextField(max_length=128)
    template_name = TextField(max_length=512, required=False, allow_null=True)
    language = TextField(max_length=16, default="pt_BR")
    variations = serializers.ListField(
        child=TextField(allow_blank=True, trim_whitespace=False), required=False, allow_null=True
    )
    variables = serializers.DictField(child=TextField(allow_blank=True, trim_whitespace=False), default=dict)
    channel_ids = serializers.ListField(child=TextField(max_length=128), default=list)
    name = TextField(max_length=120, allow_blank=True, default="")

    def draft(self) -> Draft:
        """What was asked for; call it after ``is_valid``."""
        given = self.validated_data
        return Draft(
            group=given["group_id"],
            template_name=given.get("template_name"),
            variations=given.get("variations"),
            variables=given["variables"],
            channels=given["channel_ids"],
            language=given["language"],
            name=given["name"],
        )


def accepted(broadcast: Broadcast, tally: Tally, outlook: Outlook) -> dict[str, Any]:
    """The answer to the POST."""
    outside = ids.encode(ids.BROADCAST, broadcast.pk)
    return {
        "id": outside,
        "broadcast_id": outside,
        "public_id": broadcast.public_id,
        "status": broadcast.status,
        "total_recipients": tally.total_count,
        "excluded_recipients": tally.counts["excluded"],
        "estimated_finish_at": outlook.finish_at,
        "warnings": [],
    }


def shown(broadcast: Broadcast, tally: Tally, outlook: Outlook) -> dict[str, Any]:
    """A broadcast in full; its feeds are loaded."""
    outside = ids.encode(ids.BROADCAST, broadcast.pk)
    return {
        "id": outside,
        "broadcast_id": outside,
        "public_id": broadcast.public_id,
        "name": broadcast.name,
        "status": broadcast.status,
        "owner_user_id": ids.encode(ids.USER, broadcast.owner_id),
        "group_id": ids.encode(ids.GROUP, broadcast.group_id),
        "channel_ids": [ids.encode(ids.CHANNEL, feed.channel_id) for feed in broadcast.feeds.all()],
        "template_name": broadcast.template_name or None,
        "language": broadcast.language,
        "variations": broadcast.variations,
        "variables": broadcast.variables,
        "idempotency_key": broadcast.idempotency_key,
        **_figures(tally),
        "waiting_for": _waiting(outlook),
        "estimated_finish_at": outlook.finish_at,
        "failure": _failure(broadcast),
        "created_at": broadcast.created_at,
        "updated_at": broadcast.updated_at,
        "started_at": broadcast.started_at,
        "finished_at": broadcast.finished_at,
        "expires_at": broadcast.expires_at,
    }


def recipient(person: Recipient, message: Message | None) -> dict[str, Any]:
    """One person of a broadcast, with what became of the message once there is one."""
    outside = ids.encode(ids.RECIPIENT, person.pk)
    return {
        "id": outside,
        "recipient_id": outside,
        "user_id": person.contact.external_id if person.contact else None,
        "contact_id": ids.encode(ids.CONTACT, person.contact_id) if person.contact_id else None,
        "phone": person.phone,
        "message_id": ids.encode(ids.MESSAGE, message.pk) if message else None,
        "wa_message_id": message.provider_id if message else None,
        **(_outcome(person) if message is None else _outcome_of(message)),
        "exclusion": person.code if person.state == State.EXCLUDED else None,
        "attempts": message.attempt if message else 0,
        "updated_at": message.updated_at if message else person.updated_at,
    }


def _figures(tally: Tally) -> dict[str, Any]:
    return {
        "total_count": tally.total_count,
        "counts": dict(tally.counts),
        "sent_count": tally.sent_count,
        "delivered_count": tally.delivered_count,
        "read_count": tally.read_count,
        "failed_count": tally.failed_count,
    }


def _waiting(outlook: Outlook) -> dict[str, Any] | None:
    wait = outlook.waiting_for
    return None if wait is None else {"code": wait.code, "until": wait.until}


def _failure(broadcast: Broadcast) -> dict[str, str] | None:
    if not broadcast.failure_code:
        return None
    return {"code": broadcast.failure_code, "detail": broadcast.failure_detail}


def _outcome(person: Recipient) -> dict[str, Any]:
    """Of somebody who has no message."""
    detail = None
    if person.duplicate_of:
        detail = _("The same person as the line %(line)s.") % {"line": person.duplicate_of}
    code = person.code if person.state in _ENDED_BADLY else None
    return {"status": person.state, "error_code": code or None, "error_detail": detail}


def _outcome_of(message: Message) -> dict[str, Any]:
    word = selectors.word_of(message)
    if word == "in_doubt":
        # It may still turn out to have been delivered; until then nobody sends it again.
        return {"status": "failed", "error_code": "outcome_unknown", "error_detail": message.error_detail or None}
    if word not in _ENDED_BADLY:
        return {"status": word, "error_code": None, "error_detail": None}
    return {"status": word, "error_code": message.error_code or None, "error_detail": message.error_detail or None}
