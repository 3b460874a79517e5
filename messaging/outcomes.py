"""What became of one message, in the outside words."""

from __future__ import annotations

from dataclasses import dataclass

from messaging import codes
from messaging.codes import ErrorCode
from messaging.models import Message

Status = Message.Status

# What is still to leave reads as one word: a caller of a single message waits for its end.
_WORD_OF: dict[str, str] = {
    Status.QUEUED: "sending",
    Status.CLAIMED: "sending",
    Status.PLAYED: "read",
    Status.IN_DOUBT: "failed",
}
WORDS = ("sending", "sent", "delivered", "read", "failed", "canceled", "expired", "skipped", "received")
# What goes on has no error yet, whatever an attempt met.
_ENDED_BADLY = frozenset({"failed", "skipped", "canceled", "expired"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The contract's ``status``, ``error_code`` and ``error_detail``."""

    status: str
    error_code: str | None = None
    error_detail: str | None = None


def of(message: Message) -> Outcome:
    """In doubt reads ``failed`` with ``outcome_unknown``: it may still turn out to have been delivered."""
    word = _WORD_OF.get(message.status, message.status)
    if word not in _ENDED_BADLY:
        return Outcome(word)
    code = codes.outside(message.error_code)
    if message.status == Status.IN_DOUBT:
        code = ErrorCode.OUTCOME_UNKNOWN.value
    return Outcome(word, code, message.error_detail or None)
