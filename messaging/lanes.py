"""Lanes: made, claimed, woken, given figures. The only writer of their rows beside the engine's functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging import adapters, db, history, policy, rules
from messaging.faults import Point, reach
from messaging.models import Channel
from permissions.ids import new_id

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
_KEEP_DAY = """
INSERT INTO lane_days (id, organization_id, channel_id, began_at, used, used_new)
SELECT %(id)s, organization_id, channel_id, day_starts_at, used, used_new FROM lanes
WHERE channel_id = %(channel)s AND day_ends_at <= %(now)s AND used > 0
ON CONFLICT (channel_id, began_at) DO NOTHING
"""
_FIGURES = [field.name for field in fields(policy.Figures)]
_SET_FIGURES = f"""
UPDATE lanes SET used = CASE WHEN day_ends_at <= %(now)s THEN 0 ELSE used END,
    used_new = CASE WHEN day_ends_at <= %(now)s THEN 0 ELSE used_new END, rate = %(rate)s,
    ({", ".join(_FIGURES)}) = ({", ".join(f"%({name})s" for name in _FIGURES)})
WHERE channel_id = %(channel)s
"""  # noqa: S608 - columns named by the policy
# Of what a provider takes of a number; what it counts as a second begins when it likes.
_SHARE_OF_RATE = 0.9


# So long after its first the last of a slice leaves; with what a gate may put it off, within FIRST_BYTE_SECONDS.
SLICE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Claim:
    """One message of one lane, taken under a lease; what the broker is told."""

    message_id: UUID
    channel_id: UUID
    lease: int
    organization_id: UUID


@dataclass(frozen=True, slots=True)
class Slice:
    """Messages of one lane that is not serial, in order, taken under one lease."""

    message_ids: tuple[UUID, ...]
    channel_id: UUID
    lease: int
    organization_id: UUID

    def claim(self, message_id: UUID) -> Claim:
        return Claim(message_id, self.channel_id, self.lease, self.organization_id)


def create(channel_id: UUID) -> None:
    """The lane of a new channel; repeatable."""
    db.rows(_CREATE, [channel_id])


def claim(*, limit: int) -> list[Claim]:
    """Take one due message of each of up to ``limit`` due and free lanes, and commit that.

    No organization takes more than its share of the workers' threads.
    """
    if limit <= 0:
        return []
    taken = db.engine(
        "SELECT message_id, channel_id, lease, organization_id FROM engine_claim(%s, %s, %s)",
        [limit, settings.CLAIM_LEASE_SECONDS, _most_in_flight()],
    )
    if taken:
        reach(Point.AFTER_CLAIM_COMMIT)
    return [Claim(*row) for row in taken]


def reserve(*, limit: int) -> list[Slice]:
    """Take a slice of each of up to ``limit`` due lanes that are not serial, and commit that."""
    if limit <= 0:
        return []
    taken = db.engine(
        "SELECT channel_id, organization_id, lease, messages FROM engine_reserve(%s, %s)", [limit, SLICE_SECONDS]
    )
    if taken:
        reach(Point.AFTER_CLAIM_COMMIT)
    return [
        Slice(tuple(messages), channel_id, lease, organization_id)
        for channel_id, organization_id, lease, messages in taken
    ]


def _most_in_flight() -> int:
    """Of what the workers can do at once, a quarter is left for whoever comes next."""
    return max(settings.SEND_THREADS * 3 // 4, 1)


def free_overdue(*, limit: int = 500) -> int:
    """Free the lanes whose lease is over; how many."""
    ((freed,),) = db.engine("SELECT engine_free(%s, %s)", [limit, settings.CLAIM_LEASE_SECONDS])
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


def call_back(channel_id: UUID) -> None:
    """What waited for a restriction of the lane to end is looked at at once. Needs the lane's lock."""
    db.rows(
        "UPDATE messages SET not_before = NULL, updated_at = clock_timestamp() WHERE id IN ("
        "SELECT id FROM messages WHERE channel_id = %s AND status = 'queued' AND waiting_code = 'channel_restricted'"
        " ORDER BY id FOR UPDATE)",
        [channel_id],
    )
    wake([channel_id])


def renew_figures(*, limit: int = 200) -> int:
    """Have the policy write new figures where the old ones are over, and wake the lane; how many.

    The gate does so itself for a message that it meets; what no gate would meet (broadcasts of a barred number) is
    called here.
    """
    over = db.rows(
        "SELECT channel_id FROM lanes WHERE figures_until <= clock_timestamp() AND connected"
        " ORDER BY figures_until LIMIT %s",
        [limit],
    )
    for (channel_id,) in over:
        refresh_figures(channel_id)
        wake([channel_id])
    return len(over)


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


def _rate(channel: Channel) -> float | None:
    rate = adapters.for_kind(channel.kind).rate_of(channel.pk)
    return None if rate is None else rate * _SHARE_OF_RATE


def refresh_figures(channel_id: UUID) -> None:
    """Have the policy compute the lane's figures, under the lane's lock and by the database's clock."""
    with transaction.atomic():
        db.rows("SELECT 1 FROM lanes WHERE channel_id = %s FOR UPDATE", [channel_id])
        channel = Channel.unscoped.select_related("organization").get(pk=channel_id)
        now = db.database_now()
        figures = policy.figures(
            history.facts_of(channel),
            now,
            keep_open=settings.SEND_DEADLINE_SECONDS,
            spread=spread_of(channel_id),
            pace_scale=settings.PACE_SCALE,
        )
        write_figures(channel_id, figures, now, rate=_rate(channel))


def write_figures(channel_id: UUID, figures: policy.Figures, now: datetime, *, rate: float | None) -> None:
    """Put the figures that hold at ``now`` on the lane, which is locked; a day that is over is kept and begun anew."""
    values = {**asdict(figures), "channel": channel_id, "id": new_id(), "now": now, "rate": rate}
    db.rows(_KEEP_DAY, values)
    db.rows(_SET_FIGURES, values)


def spread_of(channel_id: UUID) -> float:
    """Each number has its own moment of the spread of openings, the same each day."""
    return channel_id.int % 1000 / 1000
