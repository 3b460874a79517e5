"""The port that a channel's room fills. messaging never imports a channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string


class Fault(StrEnum):
    """Whose fault a failed send is: only faults of recipient and content cost an attempt."""

    RECIPIENT = "recipient"
    CONTENT = "content"
    LANE = "lane"
    GATEWAY = "gateway"


class Sent(StrEnum):
    """Whether a failed send may have left: ``no`` is a proof, everything else is ``maybe``."""

    NO = "no"
    MAYBE = "maybe"


class ChannelError(Exception):
    """A send that did not end in an answer that says it was accepted.

    ``detail`` is safe to store and show: no personal data, no key.
    """

    def __init__(
        self,
        code: str,
        *,
        sent: Sent,
        fault: Fault,
        permanent: bool = False,
        retry_after: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(code)
        self.code = code
        self.sent = sent
        self.fault = fault
        self.permanent = permanent
        self.retry_after = retry_after
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message as an adapter needs it. ``address`` is a phone's digits or a full chat id."""

    message_id: UUID
    channel_id: UUID
    type: str
    address: str
    text: str = field(repr=False)
    attempt: int
    provider_id: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up saw at the provider: proof that the message left, and its rank by now."""

    provider_id: str
    rank: int


@dataclass(frozen=True, slots=True)
class Ack:
    """A status of a message of ours. ``rank`` as in messaging.ranks, -1 for a failure."""

    provider_id: str
    rank: int
    happened_at: datetime
    code: str = ""


@dataclass(frozen=True, slots=True)
class Echo:
    """An own message as the provider shows it, whoever wrote it: our API or the phone."""

    provider_id: str
    address: str
    text: str = field(repr=False)
    happened_at: datetime


@dataclass(frozen=True, slots=True)
class AccountChange:
    """Something about the number itself; the adapter applies it to its own rows."""

    payload: dict[str, Any] = field(repr=False)
    happened_at: datetime


Update = Ack | Echo | AccountChange


@dataclass(frozen=True, slots=True)
class ParsedEvent:
    """A raw event understood. No updates: kept, and of no effect in this version."""

    type: str
    updates: Sequence[Update] = ()


class UnreadableEvent(Exception):
    """The body is not what this provider posts; the message says why, without quoting it."""


class ChannelAdapter(Protocol):
    """What messaging asks of a channel.

    ``carries_ban_risk``: whether a number of this kind can be banned for how it is used, so that the rules
    that protect numbers hold for it. ``error_codes``: with what a message of this kind may fail for good, faults of
    recipient and content: a closed list, which integrators read.
    """

    @property
    def carries_ban_risk(self) -> bool: ...

    @property
    def error_codes(self) -> frozenset[str]: ...

    def rate_of(self, channel_id: UUID) -> float | None:
        """Messages a second that the provider takes of a number; None where a number sends one after the other."""
        ...

    def new_provider_id(self, channel_id: UUID) -> str | None:
        """A message id made by us, where the provider takes one; else None. No network."""
        ...

    def is_slow_to_prepare(self, outgoing: Outgoing) -> bool:
        """Whether ``prepare`` has something to do, so that a read-only verdict comes before it."""
        ...

    def prepare(self, outgoing: Outgoing, *, deadline: float) -> None:
        """What is slow and comes before the gate: look-ups, uploads, typing. ``deadline``: monotonic."""
        ...

    def send(self, outgoing: Outgoing, *, start_by: float, deadline: float) -> str | None:
        """One POST, one answer: the provider's id, or None where it gives none.

        Both times are monotonic: past ``start_by`` nothing may be written; ``deadline`` bounds it all.
        Raises ChannelError.
        """
        ...

    def find(self, outgoing: Outgoing) -> Found | None:
        """Look a message up by its id. None proves nothing. Raises ChannelError."""
        ...

    def addresses_of(self, chat: str) -> Sequence[str]:
        """Every spelling under which the engine may have addressed this chat."""
        ...

    def parse_webhook(self, body: bytes, *, channel_id: UUID, received_at: datetime) -> ParsedEvent:
        """Raw bytes posted to a channel's address → updates. Writes nothing.

        Raises UnreadableEvent, also where the body speaks for another channel than the one that signed it.
        """
        ...

    def apply_account_change(self, channel_id: UUID, change: AccountChange, *, now: datetime) -> None:
        """Write a change of the number's own state, in the caller's transaction."""
        ...


@cache
def _load(path: str) -> ChannelAdapter:
    adapter: ChannelAdapter = import_string(path)()
    return adapter


def for_kind(kind: str) -> ChannelAdapter:
    """The adapter of a kind of channel, as settings.CHANNEL_ADAPTERS composes it."""
    return _load(settings.CHANNEL_ADAPTERS[kind])
