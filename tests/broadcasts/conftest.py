"""A shop that may broadcast: a leader with a key, a group with people, a number that is old enough."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.utils import timezone

from audience import services as audience
from audience.models import Contact, Group, GroupMember
from broadcasts import feed, selectors, services
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast, Recipient
from events import services as events
from events.services import Actor
from messaging import services as messaging
from messaging.models import Channel, Message
from permissions import ids
from permissions.models import ApiKey, Organization, User
from tests import factories
from tests.conformance import CheckedClient

TEXTS = (
    "Oi {{nome|você}}, {saiu|chegou} o curso!",
    "{{nome|Olá}}: o curso novo está no ar.",
    "Boa notícia, {{nome|pessoal}}: tem curso novo.",
    "Curso novo para você, {{nome|colega}}.",
    "{{nome|Ei}}, veja o curso que chegou.",
)
PATH = "/api/v1/broadcasts"


@dataclass
class Shop:
    """One organization with all that a broadcast needs."""

    organization: Organization
    leader: User
    group: Group
    channel: Channel
    client: Client = field(default_factory=lambda: CheckedClient(raise_request_exception=False))

    @cached_property
    def key(self) -> ApiKey:
        return factories.ApiKeyFactory.create(organization=self.organization, owner=self.leader)  # type: ignore[no-any-return]

    @property
    def actor(self) -> Actor:
        return events.user(self.leader)

    def add(self, *phones: str, **fields: Any) -> list[GroupMember]:
        return [
            audience.add_member(group=self.group, given_phone=phone, now=timezone.now(), **fields) for phone in phones
        ]

    def add_people(self, number: int) -> None:
        for place in range(number):
            self.add(f"+55119{90000000 + place}", name=f"Pessoa {place}")

    def contact(self, phone: str) -> Contact:
        return Contact.objects.of(self.organization).get(identity=phone)

    def number(self, name: str = "Segundo") -> Channel:
        return old_number(self.organization, name)

    def compose(self, *, now: datetime | None = None, **fields: Any) -> Broadcast:
        draft = {"group": self.group.external_id, "variations": TEXTS} | fields
        return services.compose(
            organization=self.organization, owner=self.leader, draft=Draft(**draft), now=now or timezone.now()
        )

    def launched(self, **fields: Any) -> Broadcast:
        broadcast = self.compose(**fields)
        services.launch_due(now=timezone.now())
        return self.fresh(broadcast)

    def fed(self, **fields: Any) -> Broadcast:
        broadcast = self.launched(**fields)
        feed.run(now=timezone.now())
        return broadcast

    def fresh(self, broadcast: Broadcast) -> Broadcast:
        return Broadcast.objects.of(self.organization).get(pk=broadcast.pk)

    def recipients(self, broadcast: Broadcast) -> list[Recipient]:
        return list(Recipient.objects.of(self.organization).filter(broadcast=broadcast).order_by("position"))

    def states(self, broadcast: Broadcast) -> list[tuple[str, str]]:
        return [(person.state, person.code) for person in self.recipients(broadcast)]

    def messages(self, broadcast: Broadcast) -> list[Message]:
        return list(Message.objects.of(self.organization).filter(stream=broadcast.stream_id).order_by("position"))

    def settle(self, broadcast: Broadcast, status: str, number: int | None = None, **fields: Any) -> None:
        """As if the engine had brought this many queued messages of the broadcast to a status."""
        queued = [message.pk for message in self.messages(broadcast) if message.status in {"queued", "claimed"}]
        Message.objects.of(self.organization).filter(pk__in=queued[:number]).update(status=status, **fields)

    def counts(self, broadcast: Broadcast) -> dict[str, int]:
        """The counters that are not zero."""
        return {word: number for word, number in selectors.tally(broadcast).counts.items() if number}

    def body(self, **fields: Any) -> dict[str, Any]:
        return {"group_id": self.group.external_id, "variations": list(TEXTS)} | fields

    def post(self, body: Any = None, *, path: str = PATH, key: Any = None, **headers: str) -> Any:
        return self.client.post(
            path,
            json.dumps(self.body() if body is None else body),
            content_type="application/json",
            headers=factories.bearer(key or self.key)
            | {name.replace("_", "-"): value for name, value in headers.items()},
        )

    def get(self, path: str = PATH, *, key: Any = None, **parameters: Any) -> Any:
        return self.client.get(path, parameters, headers=factories.bearer(key or self.key))

    def move(self, broadcast: Broadcast, move: str, **options: Any) -> Any:
        return self.post({}, path=f"{url(broadcast)}/{move}", **options)


def url(broadcast: Broadcast) -> str:
    return f"{PATH}/{ids.encode(ids.BROADCAST, broadcast.pk)}"


def old_number(organization: Organization, name: str) -> Channel:
    """A connected number, open all day and old enough for broadcasts."""
    channel = factories.ChannelFactory.create(organization=organization, name=name)
    Channel.objects.of(organization).filter(pk=channel.pk).update(
        in_use_since="2020-01-01", window_opens="00:00", window_closes="00:00"
    )
    messaging.set_connected(channel.pk, connected=True, now=timezone.now())
    channel.refresh_from_db()
    return channel


def new_shop() -> Shop:
    organization = factories.OrganizationFactory.create()
    leading = factories.TeamMemberFactory.create(organization=organization, team__organization=organization)
    group = factories.GroupFactory.create(organization=organization, team=leading.team)
    return Shop(organization, leading.user, group, old_number(organization, "Balcão"))


@pytest.fixture
def make_shop() -> Callable[[], Shop]:
    return new_shop


@pytest.fixture
def shop(db: Any, make_shop: Callable[[], Shop]) -> Shop:
    return make_shop()


@pytest.fixture
def slow_lanes(settings: LazySettings) -> None:
    """Lanes are fed two messages at a time."""
    settings.FEED_AHEAD_SECONDS = 1.0


@pytest.fixture
def error() -> Callable[[Any], tuple[int, str, str | None]]:
    """Status, code and attr of an answer with one error."""

    def read(response: Any) -> tuple[int, str, str | None]:
        (only,) = response.json()["errors"]
        return response.status_code, only["code"], only["attr"]

    return read


def close_connection() -> None:
    """What a thread of a test does last."""
    connection.close()
