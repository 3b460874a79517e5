"""Streams: what a broadcast looks like to the engine, made and moved by the room above.

Each function locks the stream's row first (one lock order everywhere) and runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet

from messaging import db, lanes, policy, ranks
from messaging.models import Message, Stream
from messaging.policy import Facts

_FEED = """
INSERT INTO messages (id, organization_id, channel_id, stream_id, contact_id, direction, origin, type, address,
    text, status, priority, turn, position, attempt, faults, history, waiting_code, error_code, error_detail,
    error_sent, created_at, updated_at)
SELECT id, %(organization)s, %(channel)s, %(stream)s, contact_id, 'out', 'broadcast', 'text', address, text,
    'queued', 2, %(turn)s + place, place_in_stream, 0, 0, '[]', '', '', '', '', clock_timestamp(), clock_timestamp()
FROM unnest(%(ids)s::uuid[], %(contacts)s::uuid[], %(addresses)s::text[], %(texts)s::text[],
            %(positions)s::bigint[]) WITH ORDINALITY AS page (id, contact_id, address, text, place_in_stream, place)
ON CONFLICT (id) DO NOTHING
RETURNING 1
"""
# Streams of a lane take turns: a page begins after the stream's own last turn, and not before the turn that
# the others have reached.
_TURN = """
SELECT greatest(
  coalesce((SELECT max(turn) FROM messages
            WHERE channel_id = %(channel)s AND stream_id = %(stream)s AND status = 'queued'), 0),
  coalesce((SELECT turn FROM messages WHERE channel_id = %(channel)s AND status = 'queued' AND priority = 2
            ORDER BY turn LIMIT 1) - 1, 0))
"""


# Lanes before messages, in the one order of locks; then a statement of its own, to see what the locks saw.
_LOCK_LANES = """
SELECT channel_id FROM lanes WHERE channel_id IN (
  SELECT channel_id FROM messages WHERE stream_id = %s AND status = 'failed' AND error_sent = 'no')
ORDER BY channel_id FOR UPDATE
"""
# The attempts stay counted and in the history; what a person asks for anew has all its tries again.
_RETRY = """
UPDATE messages m SET status = 'queued', turn = %(turn)s + again.place, faults = 0, lease = NULL,
    not_before = NULL, waiting_code = '', waiting_until = NULL, error_code = '', error_detail = '',
    error_sent = '', updated_at = clock_timestamp()
FROM (SELECT id, row_number() OVER (ORDER BY position) AS place FROM (
        SELECT id, position FROM messages
        WHERE stream_id = %(stream)s AND channel_id = %(channel)s AND status = 'failed' AND error_sent = 'no'
        ORDER BY id FOR UPDATE) AS failed) AS again
WHERE m.id = again.id
RETURNING 1
"""


@dataclass(frozen=True, slots=True)
class Page:
    """One message to be fed. ``id`` was drawn at the freeze; ``position`` is the order of the audience."""

    id: UUID
    contact_id: UUID | None
    address: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Until when the next of a stream's messages is put off, and its waiting_code."""

    until: datetime
    code: str


class StreamEnded(Exception):
    """The stream is canceled: nothing can be fed into it or moved back."""


def create(
    *,
    organization_id: UUID,
    expires_at: datetime | None,
    now: datetime,
    gap: float | None = None,
    hours: tuple[time, time] | None = None,
) -> Stream:
    """A running stream without messages.

    ``gap`` (seconds) and ``hours`` come on top of those of the numbers: they only make it slower.
    """
    stream = Stream.objects.create(
        organization_id=organization_id,
        state=Stream.State.RUNNING,
        expires_at=expires_at,
        gap=None if gap is None else gap * settings.PACE_SCALE,
        window_opens=hours and hours[0],
        window_closes=hours and hours[1],
        created_at=now,
    )
    if hours is not None:
        set_hours(stream, now)
    return stream


def lock(stream_id: UUID) -> Stream:
    """The stream's row, locked and fresh. The first lock of whoever moves or feeds it."""
    return Stream.unscoped.select_for_update().get(pk=stream_id)


def try_lock(stream_id: UUID) -> Stream | None:
    """The same for sweeps: None where somebody else holds it, so that one stream holds up no other."""
    return Stream.unscoped.select_for_update(skip_locked=True).filter(pk=stream_id).first()


def refresh_hours_of(message_id: UUID) -> None:
    """Have the policy tell anew when the message's stream is open by its own hours, where it has any."""
    with transaction.atomic():
        stream = (
            Stream.unscoped.select_for_update(of=("self",))
            .select_related("organization")
            .filter(pk__in=Message.unscoped.filter(pk=message_id).values("stream"), window_opens__isnull=False)
            .first()
        )
        if stream is not None:
            set_hours(stream, db.database_now())


def set_hours(stream: Stream, now: datetime) -> None:
    """Figures of its own hours; those of the numbers, and their holidays, are the lanes'."""
    assert stream.window_opens is not None
    assert stream.window_closes is not None
    stream.next_at, stream.open_until = policy.window(
        Facts(stream.organization.time_zone, in_use_since=None),
        now,
        keep_open=settings.SEND_DEADLINE_SECONDS,
        hours=(stream.window_opens, stream.window_closes),
    )
    stream.save(update_fields=["next_at", "open_until"])


def pause(stream: Stream) -> None:
    """Stop claims: at most the one message per lane that is past its gate still leaves."""
    _move(stream, Stream.State.PAUSED)


def resume(stream: Stream) -> None:
    """Let claims go on where they stopped."""
    _move(stream, Stream.State.RUNNING)
    lanes.wake(
        list(
            Message.unscoped.filter(stream=stream, status=Message.Status.QUEUED)
            .values_list("channel_id", flat=True)
            .distinct()
        )
    )


def cancel(stream: Stream) -> int:
    """End the stream and what is queued or claimed in it; how many messages that ended.

    A claim in a worker's hands meets its gate as stale; one past its gate is settled as it ends.
    """
    _move(stream, Stream.State.CANCELED)
    return len(
        db.rows(
            "UPDATE messages SET lease = NULL, status = CASE WHEN doubted THEN 'in_doubt' ELSE 'canceled' END,"
            " error_code = CASE WHEN doubted THEN 'outcome_unknown' ELSE 'broadcast_canceled' END,"
            " error_sent = CASE WHEN doubted THEN 'maybe' ELSE error_sent END,"
            " waiting_code = '', waiting_until = NULL, updated_at = clock_timestamp()"
            " WHERE id IN (SELECT id FROM messages WHERE stream_id = %s AND organization_id = %s"
            " AND status IN ('queued', 'claimed') ORDER BY id FOR UPDATE) RETURNING 1",
            [stream.pk, stream.organization_id],
        )
    )


def end(stream: Stream) -> None:
    """The broadcast is completed; late acks still count."""
    _move(stream, Stream.State.ENDED)


def start_clock(stream: Stream, expires_at: datetime) -> None:
    """Set until when the stream's messages may leave."""
    stream.expires_at = expires_at
    stream.save(update_fields=["expires_at"])


def retry_failed(stream: Stream, *, new_end: datetime, now: datetime) -> int:
    """Queue again the stream's messages that failed and certainly were not sent; how many.

    Where there are any, a stream that had ended runs again, until ``new_end`` if its own end has passed.
    Raises StreamEnded for a canceled one.
    """
    _require_alive(stream)
    channels = [row[0] for row in db.rows(_LOCK_LANES, [stream.pk])]
    again = sum(_retry(stream, channel_id) for channel_id in channels)
    if again:
        reopen(stream, new_end=new_end, now=now)
        lanes.wake(channels)
    return again


def reopen(stream: Stream, *, new_end: datetime, now: datetime) -> None:
    """Let a locked stream run again where it had ended, until ``new_end`` if its own end has passed.

    Raises StreamEnded for a canceled one.
    """
    _require_alive(stream)
    if stream.state == Stream.State.ENDED:
        stream.state = Stream.State.RUNNING
    if stream.expires_at is not None and stream.expires_at <= now:
        stream.expires_at = new_end
    stream.save(update_fields=["state", "expires_at"])


def next_turn(stream: Stream, channel_id: UUID) -> int:
    """The turn of what is queued now behind all of the stream's own in that lane."""
    (turn,) = db.row(_TURN, {"channel": channel_id, "stream": stream.pk})
    return int(turn) + 1


def retryable(stream_id: UUID) -> int:
    """How many messages ``retry_failed`` would queue again."""
    failed = Message.unscoped.filter(stream=stream_id, status=Message.Status.FAILED, error_sent=Message.Sent.NO)
    return failed.count()


def _retry(stream: Stream, channel_id: UUID) -> int:
    named = {"channel": channel_id, "stream": stream.pk}
    (turn,) = db.row(_TURN, named)
    return len(db.rows(_RETRY, {**named, "turn": turn}))


def feed(*, stream: Stream, channel_id: UUID, page: Sequence[Page]) -> int:
    """Queue one page behind what the lane has; how many were new. The stream is locked and running."""
    if not page:
        return 0
    (turn,) = db.row(_TURN, {"channel": channel_id, "stream": stream.pk})
    fed = db.rows(
        _FEED,
        {
            "organization": stream.organization_id,
            "channel": channel_id,
            "stream": stream.pk,
            "turn": turn,
            "ids": [item.id for item in page],
            "contacts": [item.contact_id for item in page],
            "addresses": [item.address for item in page],
            "texts": [item.text for item in page],
            "positions": [item.position for item in page],
        },
    )
    lanes.wake([channel_id])
    return len(fed)


def queued(stream: Stream, *, now: datetime) -> Mapping[UUID, int]:
    """Messages of the stream that wait for their turn in each lane; those put off until later take nobody's place."""
    due = Q(not_before=None) | Q(not_before__lte=now)
    waiting = _of(stream).filter(due, status__in=[Message.Status.QUEUED, Message.Status.CLAIMED])
    return dict(waiting.values_list("channel").annotate(n=Count("pk")).order_by())


def has_unfinished(stream: Stream) -> bool:
    """Whether any message may still leave or is leaving. One in doubt holds nobody up."""
    return _of(stream).filter(status__in=ranks.UNFINISHED).exists()


def resting(stream_ids: Collection[UUID]) -> dict[UUID, Rest]:
    """Of the streams of which nothing but messages that wait is queued: until when the first waits, and for what."""
    if not stream_ids:
        return {}
    found = db.rows(
        "SELECT stream_id, min(not_before), (array_agg(waiting_code ORDER BY not_before))[1] FROM messages"
        " WHERE stream_id = ANY (%s) AND status IN ('queued', 'claimed', 'sending') GROUP BY stream_id"
        " HAVING bool_and(status = 'queued' AND not_before IS NOT NULL)",
        [list(stream_ids)],
    )
    return {stream_id: Rest(until, code) for stream_id, until, code in found}


def may_have_sent(stream: Stream) -> bool:
    """Whether any message left, may have left, or failed and can be tried again."""
    unsent = (Message.Status.CANCELED, Message.Status.EXPIRED, Message.Status.SKIPPED)
    return _of(stream).exclude(status__in=unsent).exists()


def counts(stream_ids: Iterable[UUID]) -> Mapping[UUID, Mapping[str, int]]:
    """``{stream: {status: messages}}``, counted from the rows."""
    result: dict[UUID, dict[str, int]] = {}
    counted = (
        Message.unscoped.filter(stream__in=list(stream_ids))
        .values_list("stream", "status")
        .annotate(n=Count("pk"))
        .order_by()
    )
    for stream_id, status, number in counted:
        result.setdefault(stream_id, {})[status] = number
    return result


def _of(stream: Stream) -> QuerySet[Message]:
    """Its messages, by both columns that lead their index: sweeps have no policy that names the second."""
    return Message.objects.of(stream.organization_id).filter(stream=stream)


def _require_alive(stream: Stream) -> None:
    if stream.state == Stream.State.CANCELED:
        raise StreamEnded(StreamEnded.__doc__)


def _move(stream: Stream, state: Stream.State) -> None:
    _require_alive(stream)
    stream.state = state
    stream.save(update_fields=["state"])
