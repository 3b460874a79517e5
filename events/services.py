"""Writing down what happened, in the transaction in which it happens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from events.models import Event
from permissions import ids
from permissions.models import ApiKey, User


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it: a person, a key, or the machine itself."""

    type: Event.Actor
    id: str = ""


SYSTEM = Actor(Event.Actor.SYSTEM)


def user(person: User) -> Actor:
    return Actor(Event.Actor.USER, ids.encode(ids.USER, person.pk))


def api_key(key: ApiKey) -> Actor:
    return Actor(Event.Actor.API_KEY, ids.encode(ids.API_KEY, key.pk))


def author(person: User, key: ApiKey | None) -> Actor:
    """The key that was used, or else the person himself."""
    return api_key(key) if key is not None else user(person)


def record(
    *,
    organization_id: UUID | None,
    type: str,  # noqa: A002 - the field's name in the contract
    subject: str,
    actor: Actor,
    now: datetime,
    data: dict[str, Any] | None = None,
) -> Event:
    """Append one event. ``subject`` is a prefixed id; ``data`` holds no text, key or secret."""
    event = Event(
        organization_id=organization_id,
        type=type,
        subject=subject,
        actor_type=actor.type,
        actor=actor.id,
        data=data or {},
        created_at=now,
    )
    event.save(force_insert=True)
    return event
