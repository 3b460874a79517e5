"""A connected lane with messages, and an adapter that does as it is told."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from audience.models import Contact
from messaging import adapters, db, lanes, services, streams
from messaging.adapters import Found, Outgoing, ParsedEvent
from messaging.models import Channel, Lane, Message, Stream
from permissions.ids import new_id
from permissions.models import Organization

# A Tuesday noon in São Paulo, for what is judged by the calendar.
NOON = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)


@dataclass
class ScriptedAdapter:
    """The port of messaging, with answers set by the test. ``sent`` is what left, in order."""

    sent: list[Outgoing] = field(default_factory=list)
    on_send: Callable[[Outgoing], str | None] = lambda outgoing: outgoing.provider_id
    on_find: Callable[[Outgoing], Found | None] = lambda _outgoing: None
    on_prepare: Callable[[Outgoing], None] | None = None
    takes_ids: bool = True
    rate: float | None = None
    carries_ban_risk: bool = True
    error_codes: frozenset[str] = frozenset({"waha_rejected"})

    def rate_of(self, channel_id: UUID) -> float | None:
        return self.rate

    def new_provider_id(self, channel_id: UUID) -> str | None:
        return f"3EB0{new_id().hex[-18:].upper()}" if self.takes_ids else None

    def is_slow_to_prepare(self, outgoing: Outgoing) -> bool:
        return self.on_prepare is not None

    def prepare(self, outgoing: Outgoing, *, deadline: float) -> None:
        assert self.on_prepare is not None
        self.on_prepare(outgoing)

    def send(self, outgoing: Outgoing, *, start_by: float, deadline: float) -> str | None:
        self.sent.append(outgoing)
        return self.on_send(outgoing)

    def find(self, outgoing: Outgoing) -> Found | None:
        return self.on_find(outgoing)

    def addresses_of(self, chat: str) -> list[str]:
        return [chat]

    def parse_webhook(self, body: bytes, *, channel_id: UUID, received_at: datetime) -> ParsedEvent:
        return ParsedEvent("unknown")

    def apply_account_change(self, channel_id: UUID, change: Any, *, now: datetime) -> None:
        raise AssertionError("not scripted")


@dataclass
class Lab:
    """One organization with one connected channel, all day open, old enough for broadcasts."""

    organization: Organization
    channel: Channel
    adapter: ScriptedAdapter
    turns: Iterator[int] = field(default_factory=itertools.count)

    def stream(self) -> Stream:
        return streams.create(organization_id=self.organization.pk, expires_at=None, now=db.database_now())

    def queue(self, text: str = "oi", *, priority: int = Message.Priority.AUTOMATIC, **fields: Any) -> Message:
        """The next in line, even where the clock stands still."""
        fields.setdefault("address", "5511999990001")
        message = services.queue_single(
            channel=self.channel,
            text=text,
            priority=Message.Priority(priority),
            now=db.database_now(),
            **fields,
        )
        message.position += next(self.turns)
        message.save(update_fields=["position"])
        return message

    def feed(self, stream: Stream, number: int, *, after: int = 0) -> list[Message]:
        """Queue a page of so many people, those behind the first ``after``."""
        pages = [
            streams.Page(new_id(), self.person(place).pk, f"55119999900{place:02}", f"texto {place}", place)
            for place in range(after, after + number)
        ]
        streams.feed(stream=stream, channel_id=self.channel.pk, page=pages)
        fed = Message.objects.of(self.organization).in_bulk([item.id for item in pages])
        return [fed[item.id] for item in pages]

    def person(self, place: int) -> Contact:
        found, _ = Contact.unscoped.get_or_create(organization=self.organization, identity=f"55119999900{place:02}")
        return found

    def block(self, message: Message) -> None:
        """As if its person had opted out."""
        assert message.contact_id is not None
        Contact.unscoped.filter(pk=message.contact_id).update(is_blocked=True)

    def lane(self, **changes: Any) -> dict[str, Any]:
        """The lane's row; with changes, what a test makes of it first ("any_at" etc. in SQL)."""
        for column, expression in changes.items():
            db.rows(f"UPDATE lanes SET {column} = {expression} WHERE channel_id = %s", [self.channel.pk])
        return dict(Lane.objects.filter(pk=self.channel.pk).values().get())

    def rested(self) -> None:
        """As if the gaps had passed."""
        long_ago = "clock_timestamp() - interval '1 minute'"
        self.lane(any_at=long_ago, broadcast_at=long_ago, next_at=long_ago)

    def claim(self) -> lanes.Claim:
        (claim,) = lanes.claim(limit=10)
        return claim


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdapter:
    scripted = ScriptedAdapter()
    monkeypatch.setattr(adapters, "for_kind", lambda _kind: scripted)
    return scripted


@pytest.fixture
def make_lab(adapter: ScriptedAdapter) -> Callable[..., Lab]:
    def make(slug: str = "loja") -> Lab:
        organization = Organization.objects.create(name=slug, slug=slug)
        channel = services.create_channel(organization=organization, kind="waha", name="Balcão", now=db.database_now())
        Channel.unscoped.filter(pk=channel.pk).update(
            in_use_since="2020-01-01", window_opens="00:00", window_closes="00:00"
        )
        services.set_connected(channel.pk, connected=True, now=db.database_now())
        channel.refresh_from_db()
        return Lab(organization, channel, adapter)

    return make


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab()
