"""Ids: a UUIDv7 inside, a prefix in front of its 32 hex digits at the border (``bc_0199…``)."""

from __future__ import annotations

from uuid import UUID

import uuid_utils.compat

ORGANIZATION = "org"
USER = "usr"
TEAM = "team"
API_KEY = "key"
CONTACT = "ctc"
GROUP = "grp"
CHANNEL = "ch"
MESSAGE = "msg"
BROADCAST = "bc"
RECIPIENT = "rcp"
EVENT = "evt"
WEBHOOK_EVENT = "whe"


def new_id() -> UUID:
    """A UUIDv7: ordered by time, so that indexes grow at their right end."""
    return uuid_utils.compat.uuid7()


def encode(prefix: str, value: UUID) -> str:
    """``encode("bc", UUID)`` → ``"bc_" + 32 hex digits``."""
    return f"{prefix}_{value.hex}"


def decode(prefix: str, text: str) -> UUID | None:
    """The id behind its outside form; None where the form or the prefix is another's."""
    head, _, digits = text.partition("_")
    if head != prefix or len(digits) != 32 or not digits.isascii() or not digits.isalnum():
        return None
    try:
        return UUID(hex=digits)
    except ValueError:
        return None
