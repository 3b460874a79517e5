"""Lanes: made, claimed, woken, given figures. The only writer of their rows beside the engine's functions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging import db, policy, rules
from messaging.faults import Point, reach
from messaging.models import Channel

# A lane whose channel never worked: closed figures of the past, so that the first gate asks the policy.
_CREATE = """
INSERT INTO lanes (channel_id, organization_id, connected, lease, any_at, broadcast_at, gap, gap_jitter,
    broadcast_gap, broadcast_gap_jitter, open_from, open_until, day_starts_at, day_ends_at, cap_soft, cap_hard,
    used, deck, gap_now, broadcast_gap_now, holds, failures)
SELECT id, organization_id, false, 0, long_ago, long_ago, 0, 0, 0, 0, long_ago, long_ago, long_ago, long_ago,
    0, 0, 0, '{}', 0, 0, '{}', 0
FROM channels, (SELECT timestamptz '1970-01-01 00:00+00' AS long_ago) AS times WHERE id = %s
ON CONFLICT (channel_id) DO NOTHING
"""

# "used" is of its day: it starts again once that day has ended, and never where only the zone moved.
_SET_FIGURES = """
UPDATE lanes SET used = CASE WHEN day_ends_at <= clock_timestamp() THEN 0 ELSE used END,
    (gap, gap_jitter, broadcast_gap, broadcast_gap_jitter, open_from, open_until, day_starts_at, day_ends_at,
     cap_soft, cap_hard) = (%(0)s, %(1)s, %(2)s, %(3)s, %(4)s, %(5)s, %(6)s, %(7)s, %(8)s, %(9)s)
WHERE channel_id = %(channel)s
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One message of one lane, taken under a lease; what the broker is told."""

    message_id: UUID
    channel_id: UUID
    lease: int
    organization_id: UUID


def create(channel_id: UUID) -> None:
    """The lane of a new channel; repeatable."""
    db.rows(_CREATE, [channel_id])


def claim(*, limit: int) -> list[Claim]:
    """Take one due message of each of up to ``limit`` due and free lanes, and commit that."""
    if limit <= 0:
        return []
    taken = db.engine(
        "SELECT message_id, channel_id, lease, organization_id FROM engine_claim(%s, %s)",
        [limit, settings.CLAIM_LEASE_SECONDS],
    )
    if taken:
        reach(Point.AFTER_CLAIM_COMMIT)
    return [Claim(*row) for row in taken]


def free_overdue(*, limit: int = 500) -> int:
    """Free the lanes whose lease is over; how many."""
    ((freed,),) = db.engine("SELECT engine_free(%s)", [limit])
    return int(freed)


def wake(channel_ids: Sequence[UUID]) -> None:
    """Have the dispatcher look at these lanes at once. Call it in the transaction that made the work."""
    if channel_ids:
        db.engine("SELECT engine_wake(%s)", [list(channel_ids)])


def wake_sleepers() -> int:
    """Wake lanes that sleep over work that could be claimed; how many. A belt for a lost wake."""
    woken = db.rows(
        """
        UPDATE lanes l SET next_at = clock_timestamp()
        WHERE l.next_at IS NULL AND l.busy_message IS NULL AND l.connected AND l.holds = '{}'
          AND EXISTS (
            SELECT 1 FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
            WHERE m.channel_id = l.channel_id AND m.status = 'queued'
              AND (m.stream_id IS NULL OR s.state = 'running'))
        RETURNING 1
        """
    )
    return len(woken)


def set_connected(channel_id: UUID, *, connected: bool) -> None:
    """Locks the lane; a lane that is connected looks for work at once."""
    db.rows(
        "UPDATE lanes SET connected = %s, next_at = CASE WHEN %s THEN clock_timestamp() ELSE next_at END"
        " WHERE channel_id = %s",
        [connected, connected, channel_id],
    )


def set_hold(channel_id: UUID, code: str, *, on: bool) -> bool:
    """Add or remove one hold; whether that changed anything.

    A removed one wakes the lane and forgives its failures (a breaker's all but one).
    """
    if on:
        changed = db.rows(
            "UPDATE lanes SET holds = holds || ARRAY[%s]::varchar[]"
            " WHERE channel_id = %s AND NOT holds @> ARRAY[%s]::varchar[] RETURNING 1",
            [code, channel_id, code],
        )
    else:
        changed = db.rows(
            "UPDATE lanes SET holds = array_remove(holds, %s::varchar), failures = %s,"
            " next_at = clock_timestamp()"
            " WHERE channel_id = %s AND holds @> ARRAY[%s]::varchar[] RETURNING 1",
            [code, _failures_after(code), channel_id, code],
        )
    return bool(changed)


def _failures_after(code: str) -> int:
    """A breaker opens again at the first failure: a gateway that answers look-ups and fails sends would else
    turn a handful of messages into doubts each minute."""
    return rules.BREAKER_FAILURES - 1 if code == rules.BREAKER_HOLD else 0


def refresh_figures(channel_id: UUID) -> None:
    """Have the policy compute the lane's figures, under the lane's lock and by the database's clock."""
    with transaction.atomic():
        db.rows("SELECT 1 FROM lanes WHERE channel_id = %s FOR UPDATE", [channel_id])
        channel = Channel.unscoped.select_related("organization").get(pk=channel_id)
        figures = policy.figures(
            facts_of(channel),
            db.database_now(),
            keep_open=settings.SEND_DEADLINE_SECONDS,
            spread=random.random(),  # noqa: S311 - a spread, not a secret
            pace_scale=settings.PACE_SCALE,
        )
        values = {str(place): value for place, value in enumerate(astuple(figures))}
        db.rows(_SET_FIGURES, {**values, "channel": channel_id})


def facts_of(channel: Channel) -> policy.Facts:
    """What the policy is told of a channel (its organization loaded)."""
    zone = channel.organization.time_zone
    return policy.Facts(
        time_zone=zone,
        in_use_since=policy.first_day(zone, channel.first_connected_at, channel.in_use_since),
        opens=channel.window_opens,
        closes=channel.window_closes,
        daily_cap=channel.daily_cap,
    )
