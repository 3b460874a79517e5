"""What became of one person of a broadcast, in the outside words."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from broadcasts import selectors
from broadcasts.models import Recipient
from messaging import codes
from messaging.codes import ErrorCode
from messaging.models import Message
from permissions import ids

State = Recipient.State

# What a row says of its end; a message that goes on has no error yet, whatever an attempt met.
_ENDED_BADLY = frozenset({"failed", "skipped", "canceled", "expired"})


def row(person: Recipient, message: Message | None) -> dict[str, Any]:
    """A recipient (contact loaded) with what became of the message once there is one (contract: recipients)."""
    return {
        "recipient_id": ids.encode(ids.RECIPIENT, person.pk),
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


def _outcome(person: Recipient) -> dict[str, Any]:
    """Of somebody who has no message."""
    detail = None
    if person.duplicate_of:
        detail = _("The same person as the line %(line)s.") % {"line": person.duplicate_of}
    code = person.code if person.state in _ENDED_BADLY else None
    return {"status": person.state, "error_code": codes.outside(code or ""), "error_detail": detail}


def _outcome_of(message: Message) -> dict[str, Any]:
    word = selectors.word_of(message)
    if word == "in_doubt":
        # It may still turn out to have been delivered; until then nobody sends it again.
        return {
            "status": "failed",
            "error_code": ErrorCode.OUTCOME_UNKNOWN.value,
            "error_detail": message.error_detail or None,
        }
    if word not in _ENDED_BADLY:
        return {"status": word, "error_code": None, "error_detail": None}
    code = codes.outside(message.error_code)
    return {"status": word, "error_code": code, "error_detail": message.error_detail or None}
