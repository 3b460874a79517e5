"""The stable words of this room: closed lists, which the contract names and integrators compare with."""

from __future__ import annotations

from enum import StrEnum


class PauseCode(StrEnum):
    """Why the machine paused a broadcast; a person's pause has none."""

    OWNER_WITHOUT_RIGHT = "owner_without_right"
    CHANNEL_ARCHIVED = "channel_archived"
    CHANNEL_IN_WARMUP = "channel_in_warmup"
    CHANNEL_RESERVED = "channel_reserved"
    START_MISSED = "start_missed"


class FailureCode(StrEnum):
    """Why nothing of a broadcast was sent, and nothing can be."""

    EXPIRED = "expired"
    CHANNEL_ARCHIVED = "channel_archived"
    NOBODY_LEFT = "nobody_left"


class WaitingCode(StrEnum):
    """Why nothing of a broadcast leaves right now."""

    SCHEDULED = "scheduled"
    PENDING_REVIEW = "pending_review"
    BROADCAST_PAUSED = "broadcast_paused"
    OWNER_WITHOUT_RIGHT = PauseCode.OWNER_WITHOUT_RIGHT.value
    CHANNEL_ARCHIVED = PauseCode.CHANNEL_ARCHIVED.value
    CHANNEL_IN_WARMUP = PauseCode.CHANNEL_IN_WARMUP.value
    CHANNEL_RESERVED = PauseCode.CHANNEL_RESERVED.value
    START_MISSED = PauseCode.START_MISSED.value
    CHANNEL_DISCONNECTED = "channel_disconnected"
    # Holds of a number; the last stands for those of which this list does not know.
    GATEWAY_FAILING = "gateway_failing"
    PHONE_CHANGED = "phone_changed"
    CHANNEL_HELD = "channel_held"
    OUTSIDE_WINDOW = "outside_window"
    DAILY_LIMIT = "daily_limit"
    # Those who are left were never written to before.
    CHANNEL_RESTRICTED = "channel_restricted"
    NEW_PEOPLE_LIMIT = "new_people_limit"
    PACE = "pace"
    RETRY_WAIT = "retry_wait"


class WarningCode(StrEnum):
    """What a careful operator wants to know of a broadcast that is accepted all the same."""

    EMPTY_AUDIENCE = "empty_audience"
    CHANNEL_DISCONNECTED = WaitingCode.CHANNEL_DISCONNECTED.value
    CHANNEL_HELD = WaitingCode.CHANNEL_HELD.value
    OUTSIDE_WINDOW = WaitingCode.OUTSIDE_WINDOW.value
    DAILY_LIMIT = WaitingCode.DAILY_LIMIT.value
    SEVERAL_DAYS = "several_days"
    ENDS_BEFORE_DONE = "ends_before_done"


class RiskCode(StrEnum):
    """What may cost a number: findings on a broadcast's text and people."""

    SIMILAR_TEXT = "similar_text"
    SHORT_LINK = "short_link"
    MANY_LINKS = "many_links"
    CAPITALS = "capitals"
    NEW_PEOPLE = "new_people"
