"""WAHA's webhook envelopes → what messaging understands. Pure: raw bytes in, updates out.

Whatever WAHA may post is read: unknown events are kept and of no effect, and a body that is no envelope ends in
UnreadableEvent, never in another error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from channels_waha import values
from messaging.adapters import AccountChange, Ack, Echo, ParsedEvent, UnreadableEvent, Update

_TYPE_LENGTH = 64
_STATUS_LENGTH = 40
_CODE_LENGTH = 20
# Stories, channels and lists are no conversations.
_NO_CONVERSATION = ("@broadcast", "@newsletter")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every webhook of WAHA has. ``payload`` is empty where it is no object."""

    event: str
    session: str
    happened_at: datetime
    payload: dict[str, Any] = field(repr=False)
    me: dict[str, Any] | None = field(repr=False)


def parse(body: bytes, *, session_name: str, received_at: datetime) -> ParsedEvent:
    """Raw bytes posted to ``session_name``'s address → updates. Raises UnreadableEvent."""
    envelope = read(body, received_at=received_at)
    if envelope.session != session_name:
        # The key that signed it is that of the address; it speaks for no other session.
        raise UnreadableEvent("the body names another session than its address")
    updates = _READERS.get(envelope.event, _nothing)(envelope, received_at)
    return ParsedEvent(envelope.event, updates)


def read(body: bytes, *, received_at: datetime) -> Envelope:
    """Raw bytes → envelope. Bytes that are no UTF-8 become U+FFFD. Raises UnreadableEvent."""
    try:
        # NaN and Infinity are no JSON, and nothing here needs them.
        found = json.loads(body.decode("utf-8", "replace"), parse_constant=lambda _constant: None)
    except RecursionError:
        raise UnreadableEvent("nested too deep") from None
    except ValueError:
        raise UnreadableEvent("not JSON") from None
    if not isinstance(found, dict):
        raise UnreadableEvent("not an object")
    event = values.word(found.get("event"), _TYPE_LENGTH)
    if not event:
        raise UnreadableEvent("no event")
    payload, me = found.get("payload"), found.get("me")
    return Envelope(
        event=event,
        session=values.text(found.get("session")),
        happened_at=values.moment(found.get("timestamp"), received_at=received_at),
        payload=payload if isinstance(payload, dict) else {},
        me=me if isinstance(me, dict) else None,
    )


def _nothing(_envelope: Envelope, _received_at: datetime) -> Sequence[Update]:
    return ()


def _ack(envelope: Envelope, _received_at: datetime) -> Sequence[Update]:
    """An ack has no time of its own: the envelope's is when WAHA heard of it."""
    payload = envelope.payload
    provider_id = values.bare_id(payload.get("id"))
    rank = values.rank(payload.get("ack"), payload.get("ackName"))
    if provider_id is None or rank is None or not values.is_own(payload):
        return ()
    return (Ack(provider_id, rank, envelope.happened_at, _error_code(payload) if rank < 0 else ""),)


def _error_code(payload: dict[str, Any]) -> str:
    """ERROR has no reason in most versions; the newest name a code."""
    error = payload.get("error")
    code = values.word(error.get("code"), _CODE_LENGTH) if isinstance(error, dict) else ""
    return f"ack_error_{code}" if code else "ack_error"


def _message(envelope: Envelope, received_at: datetime) -> Sequence[Update]:
    """Own messages only; what others write is kept raw."""
    payload = envelope.payload
    provider_id = values.bare_id(payload.get("id"))
    if provider_id is None or not values.is_own(payload):
        return ()
    chat = _chat(payload)
    if chat is None or chat.endswith(_NO_CONVERSATION):
        return ()
    happened_at = values.moment(payload.get("timestamp"), received_at=received_at)
    return (Echo(provider_id, chat, values.text(payload.get("body")), happened_at),)


def _chat(payload: dict[str, Any]) -> str | None:
    """The chat of an own message: in its id, else WEBJS's ``to``, else NOWEB's and GOWS's ``from``.

    A hidden id gives way to the phone that NOWEB names beside it: the engine wrote to the phone.
    """
    identifier = payload.get("id")
    chat = values.chat_in_id(identifier) or values.chat(payload.get("to")) or values.chat(payload.get("from"))
    if chat is not None and chat.endswith("@lid"):
        data = payload.get("_data")
        key = data.get("key") if isinstance(data, dict) else None
        beside = values.chat(key.get("remoteJidAlt")) if isinstance(key, dict) else None
        return beside or chat
    return chat


def _status(envelope: Envelope, _received_at: datetime) -> Sequence[Update]:
    status = values.word(envelope.payload.get("status"), _STATUS_LENGTH)
    if not status:
        return ()
    me = envelope.me or {}
    payload = {"status": status, "me": {"id": me.get("id")} if isinstance(me.get("id"), str) else None}
    return (AccountChange(payload, envelope.happened_at),)


_READERS: dict[str, Callable[[Envelope, datetime], Sequence[Update]]] = {
    "message.ack": _ack,
    "message.any": _message,
    "session.status": _status,
}
