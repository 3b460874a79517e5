"""Why a message was not sent, in the closed list of words that integrators compare with (``error_code``)."""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings

from messaging import adapters


class ErrorCode(StrEnum):
    """The engine's own reasons. Each kind of channel has some beside them (``ChannelAdapter.error_codes``)."""

    # Its turn came, or its time was over, and it was not to leave.
    BROADCAST_CANCELED = "broadcast_canceled"
    EXPIRED = "expired"
    CONTACT_BLOCKED = "contact_blocked"
    CONTACT_ON_HOLD = "contact_on_hold"
    CONTACT_ERASED = "contact_erased"
    DUPLICATE = "duplicate"
    MISSING_VARIABLE = "missing_variable"
    TEXT_TOO_LONG = "text_too_long"
    NOT_ON_WHATSAPP = "not_on_whatsapp"
    # It left, and came back as an error; or nobody knows.
    ACK_ERROR = "ack_error"
    OUTCOME_UNKNOWN = "outcome_unknown"
    # Stands for whatever this list does not know.
    SEND_FAILED = "send_failed"


_OWN = frozenset(code.value for code in ErrorCode)


def all_codes() -> list[str]:
    """Every code that ``outside`` may give."""
    return sorted(_OWN.union(*_of_channels()))


def outside(code: str) -> str | None:
    """A row's code as integrators see it; None of none. What a gateway's newer version says is no new word here."""
    if not code:
        return None
    if code.startswith(f"{ErrorCode.ACK_ERROR}_"):
        return ErrorCode.ACK_ERROR.value
    is_known = code in _OWN or any(code in known for known in _of_channels())
    return code if is_known else ErrorCode.SEND_FAILED.value


def _of_channels() -> list[frozenset[str]]:
    return [adapters.for_kind(kind).error_codes for kind in settings.CHANNEL_ADAPTERS]
