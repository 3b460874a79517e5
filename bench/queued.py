"""Messages that lie ready on numbers, so that nothing but the engine is measured once those open."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import date

from django.utils import timezone

from bench import owner
from bench.figures import WrongResult
from bench.shop import Shop
from messaging import lanes, streams
from messaging.models import Channel, Message, Stream

_PATIENCE_SECONDS = 120.0
_FILL = """
WITH people AS (
  INSERT INTO contacts (id, organization_id, identity, name, attributes, is_blocked, is_on_hold, blocked_reason,
      created_at, updated_at)
  SELECT uuid7(), %(organization)s, (%(first)s + n)::text, '', '{}', false, false, '', now(), now()
  FROM generate_series(0, %(number)s - 1) AS n RETURNING id, identity, identity::bigint - %(first)s AS place
)
INSERT INTO messages (id, organization_id, channel_id, stream_id, contact_id, direction, origin, type, address,
    text, status, priority, turn, position, attempt, faults, history, waiting_code, error_code, error_detail,
    error_sent, created_at, updated_at)
SELECT uuid7(), %(organization)s, (%(channels)s::uuid[])[1 + place %% cardinality(%(channels)s::uuid[])], %(stream)s,
    id, 'out', 'broadcast', 'text', identity, 'Oi Pessoa ' || identity || ', o curso Python tem turma.', 'queued', 2,
    1 + place / cardinality(%(channels)s::uuid[]), place, 0, 0, '[]', '', '', '', '', now(), now()
FROM people
"""
# At no hour closed, with no cap, no gap, and connected to nothing yet.
_OPEN = """
UPDATE lanes SET cap_soft = 1000000000, cap_hard = 1000000000, cap_new = 1000000000, barred = '', rate = %s,
    figures_until = '2100-01-01', day_ends_at = '2100-01-01', open_from = '2000-01-01', open_until = '2100-01-01'
WHERE channel_id = ANY (%s)
"""
_END = (Message.Status.QUEUED, Message.Status.CLAIMED, Message.Status.SENDING)


def shares(number: int, parts: int) -> list[int]:
    """As even as whole numbers are."""
    return [number // parts + (place < number % parts) for place in range(parts)]


def numbers(shop: Shop, kind: str, number: int, *, rate: float | None = None) -> list[Channel]:
    """So many numbers, not connected yet, at no hour closed and with no cap. ``rate``: what ``rate_of`` says."""
    made = Channel.unscoped.bulk_create(
        Channel(
            organization=shop.organization,
            kind=kind,
            name=f"{kind} {place}",
            in_use_since=date(2020, 1, 1),
            created_at=timezone.now(),
        )
        for place in range(number)
    )
    for channel in made:
        lanes.create(channel.pk)
    with owner.connected() as connection:
        connection.execute(_OPEN, [rate, [channel.pk for channel in made]])
    return made


def fill(shop: Shop, channels: Sequence[Channel], *, first: int, number: int) -> Stream:
    """Queue ``number`` messages to people from the phone ``first`` on, evenly over the numbers."""
    stream = streams.create(organization_id=shop.organization.pk, expires_at=None, now=timezone.now())
    values = {
        "organization": shop.organization.pk,
        "stream": stream.pk,
        "channels": [channel.pk for channel in channels],
        "first": first,
        "number": number,
    }
    with owner.connected() as connection:
        connection.execute(_FILL, values)
    return stream


def analyze() -> None:
    """Tell the planner of what was filled in; a server that runs for hours has seen its rows come."""
    with owner.connected() as connection:
        connection.execute("ANALYZE contacts, messages, lanes, channels")


def open_up(channels: Sequence[Channel]) -> None:
    """From now on they send, all at once."""
    with owner.connected() as connection:
        connection.execute(
            "UPDATE lanes SET connected = true, next_at = clock_timestamp() WHERE channel_id = ANY (%s)",
            [[channel.pk for channel in channels]],
        )


def shut(channels: Sequence[Channel]) -> None:
    """They begin no more."""
    with owner.connected() as connection:
        connection.execute(
            "UPDATE lanes SET connected = false WHERE channel_id = ANY (%s)", [[channel.pk for channel in channels]]
        )


def wait_for(*waited: Stream, patience: float = _PATIENCE_SECONDS) -> None:
    """Until nothing of these waits or is under way. Raises WrongResult."""
    give_up = time.monotonic() + patience
    mine = Message.unscoped.filter(stream__in=waited)
    while mine.filter(status__in=_END).exists():
        if time.monotonic() > give_up:
            left = Counter(mine.values_list("status", "waiting_code", "error_code"))
            raise WrongResult(f"not sent yet: {dict(left)}")
        time.sleep(0.2)
