"""Reads of session rows."""

from __future__ import annotations

import functools
import re
import secrets
import time
from dataclasses import dataclass, field
from uuid import UUID

from channels_waha.models import ChannelSession
from messaging import db
from messaging.models import Channel
from permissions import isolation
from permissions.encryption import decrypt, encrypt
from permissions.isolation import Sweep

_NAME = re.compile(r"[A-Za-z0-9_-]{1,54}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who may post to a webhook address. ``channel``: None where there is no such session."""

    channel: Channel | None
    secrets: tuple[str, str] = field(repr=False)


# For so long a caller is believed to be as he was last read; a secret that was taken back signs no longer than that.
_RECENT_SECONDS = 5.0
_MOST_REMEMBERED = 10_000
_recent: dict[str, tuple[float, Caller]] = {}


def recent_caller(session_name: str) -> Caller | None:
    """What ``caller_of`` found in the last seconds, without asking again; None where it found nobody."""
    read_at, caller = _recent.get(session_name, (0.0, None))
    return caller if time.monotonic() - read_at < _RECENT_SECONDS else None


def forget_callers() -> None:
    """Have every caller read anew."""
    _recent.clear()


def caller_of(session_name: str) -> Caller:
    """The channel behind a webhook address and the two secrets that may sign for it.

    An unknown name costs what a known one does and gets secrets that nobody has; so does a missing second one.
    Raises django.db.Error, and SecretUnreadable.
    """
    known = _NAME.fullmatch(session_name) is not None
    with isolation.across_tenants(Sweep.WEBHOOK):
        found = db.rows(_CALLER, [session_name if known else "-"])
    dummy = decrypt(_dummy())
    if not found:
        return Caller(None, (dummy, dummy))
    secret, previous, channel_id, organization_id, kind = found[0]
    channel = Channel(id=channel_id, organization_id=organization_id, kind=kind)
    caller = Caller(channel, (_opened(secret) or dummy, _opened(previous) or dummy))
    if len(_recent) >= _MOST_REMEMBERED:
        _recent.clear()
    _recent[session_name] = (time.monotonic(), caller)
    return caller


def _opened(token: str) -> str:
    return decrypt(token) if token else ""


# Prepared, as every webhook begins with it.
_CALLER = """
SELECT s.webhook_secret, s.previous_webhook_secret, c.id, c.organization_id, c.kind
FROM channel_sessions s JOIN channels c ON c.id = s.channel_id WHERE s.session_name = %s
"""


@dataclass(frozen=True, slots=True)
class SendingFacts:
    """What the adapter must know of a channel's session."""

    session_name: str
    engine: str
    server_version: str


def sending_facts(channel_id: UUID) -> SendingFacts:
    """Raises ChannelSession.DoesNotExist."""
    row = ChannelSession.unscoped.values_list("session_name", "engine", "server_version").get(channel_id=channel_id)
    return SendingFacts(*row)


@functools.cache
def _dummy() -> str:
    return encrypt(secrets.token_urlsafe(32))
