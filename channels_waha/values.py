"""WAHA's ways to write an id, a chat, a time and an ack, each read tolerantly. Pure; nothing here raises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from audience.phones import IdKind, identity_of_whatsapp_id
from messaging import ranks

_AHEAD = timedelta(minutes=5)
# WhatsApp began in 2009; what claims to be older is no time.
_EARLIEST = datetime(2009, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11
_MAX_NUMBER_LENGTH = 32

# {true|false}_{chat}_{id}[_{participant}]; a device's suffix in the chat may hold an underscore.
_FULL_ID = re.compile(r"(true|false)_([^@\s]{0,128}@[A-Za-z0-9.]{1,32})_([^_\s]{1,128})(?:_.*)?", re.ASCII)
_BARE_ID = re.compile(r"[!-~]{1,128}")

_RANK_BY_ACK = {-1: ranks.FAILED, 1: ranks.SENT, 2: ranks.DELIVERED, 3: ranks.READ, 4: ranks.PLAYED}
_ACK_BY_NAME = {"ERROR": -1, "PENDING": 0, "SERVER": 1, "DEVICE": 2, "READ": 3, "PLAYED": 4}


def bare_id(value: object) -> str | None:
    """The id that WhatsApp itself uses, from its full form, WEBJS's object or the bare form."""
    if isinstance(value, Mapping):
        return bare_id(value.get("id")) or bare_id(value.get("_serialized"))
    if not isinstance(value, str):
        return None
    if match := _FULL_ID.fullmatch(value):
        return match[3] if _BARE_ID.fullmatch(match[3]) else None
    parts = value.split("_")
    found = parts[2] if len(parts) >= 3 and parts[0] in {"true", "false"} else value
    return found if _BARE_ID.fullmatch(found) else None


def answered_id(answer: Mapping[str, Any]) -> str | None:
    """The id in the answer of a send: NOWEB's ``key.id``, GOWS's string ``id``, WEBJS's object."""
    key = answer.get("key")
    from_key = bare_id(key.get("id")) if isinstance(key, Mapping) else None
    return from_key or bare_id(answer.get("id")) or bare_id(answer.get("_serialized"))


def chat_in_id(value: object) -> str | None:
    """The chat part of a full id, None where it has none."""
    if isinstance(value, Mapping):
        return chat_in_id(value.get("_serialized"))
    match = _FULL_ID.fullmatch(value) if isinstance(value, str) else None
    return chat(match[2]) if match else None


def is_own(payload: Mapping[str, Any]) -> bool:
    """Whether a message is ours: ``fromMe``, or the beginning of its id where that is absent."""
    flag = payload.get("fromMe")
    if isinstance(flag, bool):
        return flag
    identifier = payload.get("id")
    return isinstance(identifier, str) and identifier.startswith("true_")


def chat(value: object) -> str | None:
    """A chat id in WAHA's public form: ``@s.whatsapp.net`` → ``@c.us``, no device suffix, bare digits → ``@c.us``."""
    if not isinstance(value, str):
        return None
    found = identity_of_whatsapp_id(value)
    if found.kind is IdKind.PHONE:
        return f"{found.value}@c.us"
    if found.kind is IdKind.LID:
        return f"{found.value}@lid"
    known = found.kind in {IdKind.GROUP, IdKind.NEWSLETTER, IdKind.BROADCAST, IdKind.STATUS}
    return value.strip().lower() if known and value.isascii() and value.isprintable() else None


def phone(value: object) -> str | None:
    """The phone of an id as E.164 with a plus, in its canonical spelling; None where it names none."""
    found = identity_of_whatsapp_id(value) if isinstance(value, str) else None
    return f"+{found.identity}" if found is not None and found.identity else None


def moment(value: object, *, received_at: datetime) -> datetime:
    """A time in seconds or milliseconds, as number, string or Long; ``received_at`` where it is nonsense.

    Never later than 5 minutes after ``received_at``.
    """
    number = _number(value)
    if number is None:
        return received_at
    seconds = number / 1000 if number >= _MILLISECONDS_FROM else number
    try:
        found = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return received_at
    if not _EARLIEST <= found <= _LATEST:
        return received_at
    return min(found, received_at + _AHEAD)


def rank(ack: object, name: object = None) -> int | None:
    """The rank (messaging.ranks) of an ack; None for PENDING and for words that WAHA may grow."""
    number = _number(ack)
    if number is None and isinstance(name, str):
        number = _ACK_BY_NAME.get(name.upper())
    return None if number is None else _RANK_BY_ACK.get(int(number) if number == int(number) else 0)


def text(value: object) -> str:
    """Text that PostgreSQL takes: NUL and lone surrogates become U+FFFD. Empty where it is none."""
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def word(value: object, length: int) -> str:
    """A short technical word: printable ASCII, cut to ``length``."""
    if not isinstance(value, str):
        return ""
    return "".join(letter for letter in value[:length] if "!" <= letter <= "~")


def _number(value: object) -> float | None:
    """A finite number, out of a number, its text, or JavaScript's Long (``{"low", "high"}``)."""
    if isinstance(value, Mapping):
        low, high = value.get("low"), value.get("high", 0)
        if type(low) is not int or type(high) is not int:
            return None
        value = (high << 32) + (low & 0xFFFFFFFF) if abs(high) < 1 << 32 else None
    if isinstance(value, str):
        value = _parsed(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _parsed(written: str) -> float | None:
    if len(written) > _MAX_NUMBER_LENGTH or not written.isascii():
        return None
    try:
        return float(written)
    except ValueError:
        return None
