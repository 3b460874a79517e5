"""A broadcast's counters over all its rows, beside the plainest GROUP BY of the same rows."""

from __future__ import annotations

import time

from django.db import connection as django_connection
from django.utils import timezone

from bench import owner
from bench.figures import Figure, WrongResult, by_turns, median_rates
from bench.options import Options
from bench.shop import Shop, open_shop
from broadcasts import selectors, services
from broadcasts.models import Broadcast
from messaging import streams
from messaging.models import Message
from permissions import isolation

_COLUMNS = [str(field.column) for field in Message._meta.local_concrete_fields]
_STATUSES = ("queued", "sent", "delivered", "read", "failed")
_FED = """
INSERT INTO messages (id, organization_id, channel_id, stream_id, contact_id, direction, origin, type, address, text,
    status, priority, turn, position, attempt, faults, history, waiting_code, error_code, error_detail, error_sent,
    created_at, updated_at)
SELECT message_id, organization_id, channel_id, %s, contact_id, 'out', 'broadcast', 'text', phone, 'oi',
    (%s::text[])[1 + position %% %s], 2, 0, position, 1, 0, '[]', '', '', '', '', now(), now()
FROM broadcast_recipients WHERE broadcast_id = %s AND state = 'pending'
"""
_AGAIN = f"""
INSERT INTO messages ({", ".join(_COLUMNS)})
SELECT {", ".join({"id": "uuid7()", "stream_id": "%s"}.get(column, column) for column in _COLUMNS)}
FROM messages WHERE stream_id = %s
"""  # noqa: S608 - columns of the model
_OTHERS = 2
_LOOKS = 5


def run(options: Options) -> list[Figure]:
    broadcast = fed(open_shop("counters"), options.people)
    seconds = by_turns(options.rounds, {"tally": lambda: _tallies(broadcast), "plain": lambda: _plain(broadcast)})
    return [
        Figure(
            what=f"counters of {options.people:,} people",
            unit="look",
            ours=median_rates(_LOOKS, seconds["tally"]),
            against="one GROUP BY over the messages alone",
            theirs=median_rates(_LOOKS, seconds["plain"]),
            floor=0.2,
            checked=_check(broadcast, options.people),
        )
    ]


def fed(shop: Shop, people: int) -> Broadcast:
    """A broadcast under way: all its people have messages, in every status."""
    group = shop.group("counters", people=people, first=200_000_000)
    draft = shop.draft(group, [shop.number("n1"), shop.number("n2")])
    broadcast = services.compose(organization=shop.organization, owner=shop.leader, draft=draft, now=timezone.now())
    with django_connection.cursor() as cursor:
        cursor.execute(_FED, [broadcast.stream_id, list(_STATUSES), len(_STATUSES), broadcast.pk])
        cursor.execute(
            "UPDATE broadcast_recipients SET state = 'fed' WHERE broadcast_id = %s AND state = 'pending'",
            [broadcast.pk],
        )
    with owner.connected() as connection:
        # A table of one broadcast would be read from end to end.
        for _other in range(_OTHERS):
            other = streams.create(organization_id=shop.organization.pk, expires_at=None, now=timezone.now())
            connection.execute(_AGAIN, [other.pk, broadcast.stream_id])
        # As autovacuum leaves tables of this size within a minute.
        connection.execute("VACUUM ANALYZE messages, broadcast_recipients")
    return broadcast


def _tallies(broadcast: Broadcast) -> float:
    began = time.perf_counter()
    # As a request of its tenant: row security has its share.
    with isolation.of(broadcast.organization_id):
        for _look in range(_LOOKS):
            selectors.tally(broadcast)
    return time.perf_counter() - began


def _plain(broadcast: Broadcast) -> float:
    began = time.perf_counter()
    with django_connection.cursor() as cursor:
        for _look in range(_LOOKS):
            cursor.execute(
                "SELECT status, count(*) FROM messages WHERE stream_id = %s GROUP BY status", [broadcast.stream_id]
            )
            cursor.fetchall()
    return time.perf_counter() - began


def _check(broadcast: Broadcast, people: int) -> str:
    tally = selectors.tally(broadcast)
    messages = Message.objects.of(broadcast.organization_id).filter(stream=broadcast.stream_id).count()
    if tally.total_count != messages or tally.total_count + tally.counts["excluded"] != people:
        raise WrongResult(f"counted {tally.total_count} of {messages} messages, and {people} lines")
    return f"{tally.total_count} counted and {tally.counts['excluded']} excluded are all {people}"
