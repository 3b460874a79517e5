"""Bodies of messages: what is taken, and what is answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from messaging import codes, outcomes, selectors
from messaging.codes import WaitingCode
from messaging.models import Message
from permissions import ids
from permissions.api.serializers import BooleanField, PrefixedIdField, StrictSerializer

# Groups are addressed by an id of their own kind.
_GROUP = "@g.us"


class RetrySerializer(StrictSerializer):
    """``POST /messages/{id}/retry``."""

    accept_duplicate_risk = BooleanField(default=False)


class MessageWaiting(serializers.Serializer[None]):
    code = serializers.ChoiceField(list(WaitingCode))
    until = serializers.DateTimeField(allow_null=True)


class MessageShown(serializers.Serializer[None]):
    """A message. One in doubt reads ``failed`` with ``outcome_unknown``, and may still turn to ``delivered``."""

    id = PrefixedIdField(ids.MESSAGE)
    message_id = PrefixedIdField(ids.MESSAGE)
    conversation_id = serializers.CharField(allow_null=True)
    channel_id = PrefixedIdField(ids.CHANNEL)
    direction = serializers.ChoiceField(Message.Direction.values)
    type = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    payload = serializers.DictField()
    status = serializers.ChoiceField(outcomes.WORDS)
    waiting_for = MessageWaiting(allow_null=True)
    wa_message_id = serializers.CharField(allow_null=True)
    sent_at = serializers.DateTimeField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)
    read_at = serializers.DateTimeField(allow_null=True)
    edited_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    sent_via = serializers.ChoiceField(Message.Origin.values, allow_null=True)
    is_group = serializers.BooleanField()
    error_detail = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        error_code = serializers.ChoiceField(codes.all_codes(), allow_null=True)
        return {**super().get_fields(), "error_code": error_code}


def shown(message: Message, now: datetime) -> dict[str, Any]:
    """A message in full. Conversations, edits and revocations are not known yet."""
    outside = ids.encode(ids.MESSAGE, message.pk)
    outcome = outcomes.of(message)
    wait = selectors.waiting_for(message, now=now)
    return {
        "id": outside,
        "message_id": outside,
        "conversation_id": None,
        "channel_id": ids.encode(ids.CHANNEL, message.channel_id),
        "direction": message.direction,
        "type": message.type,
        "text": message.text,
        "payload": {},
        "status": outcome.status,
        "waiting_for": None if wait is None else {"code": wait.code, "until": wait.until},
        "wa_message_id": message.provider_id,
        "sent_at": message.sent_at,
        "delivered_at": message.delivered_at,
        "read_at": message.read_at,
        "edited_at": None,
        "revoked_at": None,
        "sent_via": message.origin or None,
        "is_group": message.address.endswith(_GROUP),
        "error_code": outcome.error_code,
        "error_detail": outcome.error_detail,
    }
