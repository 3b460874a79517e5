"""messaging's port, filled by WAHA."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from urllib.parse import quote
from uuid import UUID

from django.conf import settings

from audience.phones import IdKind, identity_of_whatsapp_id
from channels_waha import client, payloads, presence, refusals, selectors, services, values
from channels_waha.selectors import SendingFacts
from messaging import db, ranks
from messaging.adapters import (
    AccountChange,
    ChannelError,
    Fault,
    Found,
    Outgoing,
    ParsedEvent,
    Sent,
)

# From this version on these engines take an id with the message.
_TAKES_IDS_SINCE = (2026, 4, 3)
_TAKES_IDS = frozenset({"NOWEB", "GOWS"})
_FACTS_SECONDS = 10.0
# A look-up waits up to 15 s inside WAHA where the session is in another state.
_FIND_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Cached:
    facts: SendingFacts
    read_at: float


class WahaAdapter:
    """One per process, used by all its threads: a cached fact may be read twice, never wrongly."""

    carries_ban_risk: ClassVar[bool] = True
    error_codes: ClassVar[frozenset[str]] = frozenset(
        {"invalid_chat_id", "type_not_supported", "waha_not_supported", "waha_rejected"}
    )

    def __init__(self) -> None:
        self._cache: dict[UUID, _Cached] = {}

    def rate_of(self, channel_id: UUID) -> float | None:  # noqa: ARG002 - the port's shape
        """A phone sends one after the other."""
        return None

    def new_provider_id(self, channel_id: UUID) -> str | None:
        """``3EB0`` and 18 hex digits, as WhatsApp's own clients make them; None where WAHA takes no id."""
        facts = self._facts(channel_id, max_age=_FACTS_SECONDS)
        if facts.engine not in _TAKES_IDS or _numbers(facts.server_version) < _TAKES_IDS_SINCE:
            return None
        return f"3EB0{secrets.token_hex(9).upper()}"

    def is_slow_to_prepare(self, outgoing: Outgoing) -> bool:
        """A text is typed first, where the installation wants that."""
        return settings.WAHA_TYPING_SECONDS > 0 and outgoing.type == "text"

    def prepare(self, outgoing: Outgoing, *, deadline: float) -> None:
        """Show "typing…" for as long as the text would take, at most WAHA_TYPING_SECONDS."""
        spread = random.random()  # noqa: S311 - a spread, not a secret
        seconds = presence.typing_seconds(outgoing.text, most=settings.WAHA_TYPING_SECONDS, spread=spread)
        session = self._facts(outgoing.channel_id).session_name
        chat = values.chat(outgoing.address)
        # An address or a server that is none is the send's to refuse.
        if chat is not None and settings.WAHA_BASE_URL:
            presence.show_typing(client.default_server(), session, chat, seconds=seconds, deadline=deadline)

    def send(self, outgoing: Outgoing, *, start_by: float, deadline: float) -> str | None:
        """One sendText. The id in WAHA's answer, None where it has none. Raises ChannelError."""
        if outgoing.type != "text":
            raise ChannelError("type_not_supported", sent=Sent.NO, fault=Fault.CONTENT, permanent=True)
        body = {
            "session": self._facts(outgoing.channel_id).session_name,
            "chatId": _chat_id(outgoing.address),
            "text": outgoing.text,
        }
        if outgoing.provider_id is not None:
            body["id"] = outgoing.provider_id
        server = client.default_server()
        answer = client.call(server, "POST", "/api/sendText", body=body, start_by=start_by, deadline=deadline)
        said = refusals.check(answer).json()
        if not isinstance(said, dict):
            # WEBJS answers 201 with nothing at times: it may have been sent.
            raise ChannelError("waha_broken_answer", sent=Sent.MAYBE, fault=Fault.GATEWAY)
        return values.answered_id(said)

    def find(self, outgoing: Outgoing) -> Found | None:
        """Look an own message up by its id, under each spelling of its chat. Raises ChannelError."""
        if outgoing.provider_id is None:
            return None
        deadline = time.monotonic() + _FIND_SECONDS
        chats = [chat for chat in self.addresses_of(_chat_id(outgoing.address)) if "@" in chat]
        for chat in chats:
            found = self._find_in(chat, outgoing.channel_id, outgoing.provider_id, deadline)
            if found is not None:
                return found
        return None

    def addresses_of(self, chat: str) -> Sequence[str]:
        """A phone as digits and as chat id, with and without the ninth digit; any other chat as it is."""
        found = identity_of_whatsapp_id(chat)
        if found.kind is not IdKind.PHONE:
            return (chat,)
        spellings = dict.fromkeys((found.value, *found.variants))
        return tuple(form for digits in spellings for form in (f"{digits}@c.us", digits))

    def parse_webhook(self, body: bytes, *, channel_id: UUID, received_at: datetime) -> ParsedEvent:
        """See payloads.parse."""
        return payloads.parse(body, session_name=self._facts(channel_id).session_name, received_at=received_at)

    def apply_account_change(self, channel_id: UUID, change: AccountChange, *, now: datetime) -> None:
        """A session.status, in the caller's transaction."""
        services.apply_status(
            channel_id=channel_id,
            status=change.payload["status"],
            me=change.payload["me"],
            at=change.happened_at,
            now=now,
        )

    def _find_in(self, chat: str, channel_id: UUID, provider_id: str, deadline: float) -> Found | None:
        session = self._facts(channel_id).session_name
        path = "/".join(quote(part, safe="") for part in (session, "chats", chat, "messages", provider_id))
        answer = client.call(
            client.default_server(), "GET", f"/api/{path}", query={"downloadMedia": "false"}, deadline=deadline
        )
        if answer.status in {400, 404}:
            # Not in its store, or it keeps none.
            return None
        said = refusals.check(answer).object()
        rank = values.rank(said.get("ack"), said.get("ackName"))
        # PENDING is in the store before it left, and an error is no proof of anything.
        if values.bare_id(said.get("id")) != provider_id or rank is None or rank < ranks.SENT:
            return None
        return Found(provider_id, rank)

    def _facts(self, channel_id: UUID, *, max_age: float | None = None) -> SendingFacts:
        """A session's facts; its name never changes, so those that ask for no more take them of any age."""
        cached = self._cache.get(channel_id)
        now = time.monotonic()
        if cached is None or (max_age is not None and now - cached.read_at > max_age):
            with db.borrowed():
                cached = _Cached(selectors.sending_facts(channel_id), now)
            self._cache[channel_id] = cached
        return cached.facts


def _chat_id(address: str) -> str:
    """A phone's digits or a chat id → WAHA's chat id. Raises ChannelError: WAHA itself accepts any garbage."""
    chat = values.chat(address)
    if chat is None:
        raise ChannelError("invalid_chat_id", sent=Sent.NO, fault=Fault.RECIPIENT, permanent=True)
    return chat


def _numbers(version: str) -> tuple[int, ...]:
    """``2026.4.3`` → (2026, 4, 3); what follows the numbers is left out."""
    found = re.match(r"\d{1,6}(?:\.\d{1,6}){0,3}", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
