"""Messages that lie ready on numbers, so that nothing but the engine is measured once those open."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from django.utils import timezone

from bench import owner
from bench.figures import WrongResult
from bench.shop import Shop
from messaging import lanes, services, streams
from messaging.models import Channel, Message, Stream
from messaging.streams import Page
from permissions.ids import new_id

_PATIENCE_SECONDS = 120.0
_PEOPLE = """
INSERT INTO contacts (id, organization_id, identity, name, attributes, is_blocked, is_on_hold, blocked_reason,
    created_at, updated_at)
SELECT uuid7(), %s, (%s + n)::text, '', '{}', false, false, '', now(), now() FROM generate_series(0, %s - 1) AS n
RETURNING id
"""
_OPEN = """
UPDATE lanes SET cap_soft = 1000000000, cap_hard = 1000000000, cap_new = 1000000000, barred = '',
    figures_until = '2100-01-01', day_ends_at = '2100-01-01', open_from = '2000-01-01', open_until = '2100-01-01'
WHERE channel_id = ANY (%s)
"""
_END = (Message.Status.QUEUED, Message.Status.CLAIMED, Message.Status.SENDING)


def numbers(shop: Shop, kind: str, number: int) -> list[Channel]:
    """So many numbers, not connected yet, at no hour closed and with no cap."""
    made = []
    for place in range(number):
        channel = services.create_channel(
            organization=shop.organization, kind=kind, name=f"{kind} {place}", now=timezone.now()
        )
        lanes.refresh_figures(channel.pk)
        made.append(channel)
    with owner.connected() as connection:
        connection.execute(_OPEN, [[channel.pk for channel in made]])
    return made


def fill(shop: Shop, channels: Sequence[Channel], *, first: int, number: int) -> Stream:
    """Queue ``number`` messages to people from the phone ``first`` on, evenly over the numbers."""
    with owner.connected() as connection:
        people = connection.execute(_PEOPLE, [shop.organization.pk, first, number]).fetchall()
    stream = streams.create(organization_id=shop.organization.pk, expires_at=None, now=timezone.now())
    pages = [
        Page(new_id(), person, str(first + place), f"Oi Pessoa {first + place}, o curso Python tem turma.", place)
        for place, (person,) in enumerate(people)
    ]
    for place, channel in enumerate(channels):
        streams.feed(stream=stream, channel_id=channel.pk, page=pages[place :: len(channels)])
    return stream


def open_up(channels: Sequence[Channel]) -> None:
    """From now on they send."""
    for channel in channels:
        lanes.set_connected(channel.pk, connected=True)


def wait_for(stream: Stream) -> None:
    """Until nothing of it waits or is under way. Raises WrongResult."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    mine = Message.unscoped.filter(stream=stream)
    while mine.filter(status__in=_END).exists():
        if time.monotonic() > give_up:
            left = Counter(mine.values_list("status", "waiting_code", "error_code"))
            raise WrongResult(f"not sent yet: {dict(left)}")
        time.sleep(0.1)
