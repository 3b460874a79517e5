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


class WaitingCode(StrEnum):
    """Why a message that is queued does not leave right now."""

    BROADCAST_PAUSED = "broadcast_paused"
    RETRY_WAIT = "retry_wait"
    CHANNEL_DISCONNECTED = "channel_disconnected"
    # Holds of a number; the last stands for those of which this list does not know.
    GATEWAY_FAILING = "gateway_failing"
    PHONE_CHANGED = "phone_changed"
    CHANNEL_HELD = "channel_held"
    CHANNEL_RESERVED = "channel_reserved"
    CHANNEL_IN_WARMUP = "channel_in_warmup"
    OUTSIDE_WINDOW = "outside_window"
    DAILY_LIMIT = "daily_limit"
    CHANNEL_RESTRICTED = "channel_restricted"
    NEW_PEOPLE_LIMIT = "new_people_limit"
    PACE = "pace"


def waiting_outside(code: str, *, is_hold: bool = False) -> WaitingCode:
    """A gate's code as integrators see it. Whatever else a message waits for is its next try."""
    if code in _WAITING:
        return WaitingCode(code)
    return WaitingCode.CHANNEL_HELD if is_hold else WaitingCode.RETRY_WAIT


_WAITING = frozenset(code.value for code in WaitingCode)
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
