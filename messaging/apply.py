"""Raw events understood: in order, idempotently, one applier per channel at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DataError, Error, IntegrityError, OperationalError, transaction

from messaging import adapters, db, receipts
from messaging.adapters import AccountChange, Ack, ChannelAdapter, Echo, ParsedEvent, UnreadableEvent
from messaging.faults import Point, reach
from messaging.models import Channel, WebhookEvent

log = logging.getLogger(__name__)

BATCH = 500
MAX_ATTEMPTS = 20
ECHO_RETRY_SECONDS = 2.0
OPEN = (WebhookEvent.State.RECEIVED, WebhookEvent.State.ERROR)


class NotYet(Exception):
    """The event can't be understood before something else has happened; it is looked at again soon."""


@dataclass(slots=True)
class _Batch:
    """Events of one channel on their way: acks are gathered and applied together."""

    channel: Channel
    adapter: ChannelAdapter
    acks: list[Ack] = field(default_factory=list)
    with_acks: list[WebhookEvent] = field(default_factory=list)
    # What is finished, and its state: written down together.
    done: list[tuple[WebhookEvent, WebhookEvent.State]] = field(default_factory=list)


def apply_channel(channel_id: UUID, *, now: datetime) -> int:
    """Apply the open events of one channel, a batch at a time; how many were done.

    Where another applier is at it, nothing is done here: it takes what is there.
    """
    total = 0
    while True:
        with transaction.atomic():
            (ours,) = db.row("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 1))", [str(channel_id)])
            if not ours:
                return total
            events = _open_events(channel_id, now)
            if events:
                channel = _channel(channel_id)
                _apply(_Batch(channel, adapters.for_kind(channel.kind)), events, now)
                total += len(events)
        if len(events) < BATCH:
            return total


_FIELDS = ("id", "body", "received_at", "state", "event_type", "attempts", "next_try_at", "error")
_EVENTS = f"""
SELECT {", ".join(_FIELDS)} FROM webhook_events_log
WHERE channel_id = %s AND state IN ('received', 'error') AND next_try_at <= %s
ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - columns named here


def _open_events(channel_id: UUID, now: datetime) -> list[WebhookEvent]:
    """Prepared, as is the channel's: most runs are for one ack, and compiling a query costs as much as applying it."""
    found = db.rows(_EVENTS, [channel_id, now, BATCH])
    return [WebhookEvent.from_db(DEFAULT_DB_ALIAS, _FIELDS, row) for row in found]


def _channel(channel_id: UUID) -> Channel:
    organization_id, kind = db.row("SELECT organization_id, kind FROM channels WHERE id = %s", [channel_id])
    return Channel(id=channel_id, organization_id=organization_id, kind=kind)


def _apply(batch: _Batch, events: Sequence[WebhookEvent], now: datetime) -> None:
    """Acks go set-wise, everything else in a savepoint of its own: a poisoned event holds up no other."""
    for event in events:
        try:
            _apply_one(batch, event, now)
        except NotYet:
            event.next_try_at = now + timedelta(seconds=ECHO_RETRY_SECONDS)
            event.save(update_fields=["next_try_at"])
        except UnreadableEvent as error:
            _fail(event, f"unreadable: {error}", now)
        except (DataError, IntegrityError, ValueError, TypeError, LookupError) as error:
            # Types only: messages of such errors quote what people wrote.
            log.exception("webhook event %s could not be applied", event.pk)
            _fail(event, type(error).__name__, now)
    reach(Point.INSIDE_APPLY)
    _flush(batch, now)
    _finish(batch.done, now)


def _apply_one(batch: _Batch, event: WebhookEvent, now: datetime) -> None:
    parsed = _parse(batch, event)
    event.event_type = parsed.type[:64]
    acks = [update for update in parsed.updates if isinstance(update, Ack)]
    if len(acks) < len(parsed.updates):
        with transaction.atomic():
            _apply_updates(batch, event, parsed, now)
    if acks:
        batch.acks += acks
        batch.with_acks.append(event)
    else:
        state = WebhookEvent.State.APPLIED if parsed.updates else WebhookEvent.State.IGNORED
        batch.done.append((event, state))


def _apply_updates(batch: _Batch, event: WebhookEvent, parsed: ParsedEvent, now: datetime) -> None:
    for update in parsed.updates:
        if isinstance(update, Echo):
            _apply_echo(batch, event, update, now)
        elif isinstance(update, AccountChange):
            batch.adapter.apply_account_change(batch.channel.pk, update, now=now)


def _parse(batch: _Batch, event: WebhookEvent) -> ParsedEvent:
    return batch.adapter.parse_webhook(bytes(event.body), channel_id=batch.channel.pk, received_at=event.received_at)


def _apply_echo(batch: _Batch, event: WebhookEvent, echo: Echo, now: datetime) -> None:
    """An echo is ours by id, else by content; an unknown one waits while one of ours may still be it."""
    if receipts.match_echo(batch.channel.pk, echo, batch.adapter.addresses_of(echo.address)):
        return
    patience = timedelta(seconds=settings.ECHO_PATIENCE_SECONDS)
    if event.received_at + patience > now and receipts.is_lane_busy(batch.channel.pk):
        raise NotYet
    receipts.record_external(batch.channel, echo)


def _flush(batch: _Batch, now: datetime) -> None:
    """All acks of the batch in one statement; one by one where one of them poisons it."""
    if not batch.acks:
        return
    try:
        with transaction.atomic():
            receipts.apply_acks(batch.channel.pk, batch.acks)
    except OperationalError:
        # A deadlock or a lost connection: the whole batch is taken again.
        raise
    except Error:
        log.exception("acks of channel %s could not be applied together", batch.channel.pk)
        for event in batch.with_acks:
            _apply_alone(batch, event, now)
        return
    batch.done += [(event, WebhookEvent.State.APPLIED) for event in batch.with_acks]


def _apply_alone(batch: _Batch, event: WebhookEvent, now: datetime) -> None:
    parsed = _parse(batch, event)
    try:
        with transaction.atomic():
            receipts.apply_acks(batch.channel.pk, [update for update in parsed.updates if isinstance(update, Ack)])
    except Error as error:
        _fail(event, type(error).__name__, now)
    else:
        batch.done.append((event, WebhookEvent.State.APPLIED))


_FINISH = """
UPDATE webhook_events_log w SET state = done.state, event_type = done.type, attempts = w.attempts + 1,
    applied_at = %s, next_try_at = NULL, error = ''
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS done (id, state, type) WHERE w.id = done.id
"""


def _finish(done: Sequence[tuple[WebhookEvent, WebhookEvent.State]], now: datetime) -> None:
    if done:
        events, states = zip(*done, strict=True)
        types = [event.event_type for event in events]
        db.rows(_FINISH, [now, [event.pk for event in events], list(map(str, states)), types])


def _fail(event: WebhookEvent, error: str, now: datetime) -> None:
    """Back-off of 2^n seconds, at most ten minutes; after MAX_ATTEMPTS it is dead and shown as such."""
    event.attempts += 1
    dead = event.attempts >= MAX_ATTEMPTS
    event.state = WebhookEvent.State.DEAD if dead else WebhookEvent.State.ERROR
    event.next_try_at = None if dead else now + timedelta(seconds=min(2.0**event.attempts, 600.0))
    event.error = error[:300]
    event.save(update_fields=["state", "event_type", "attempts", "next_try_at", "error"])
