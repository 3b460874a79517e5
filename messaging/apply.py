"""Raw events understood: in order, idempotently, one applier per channel at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DataError, Error, IntegrityError, OperationalError, connection, transaction

from messaging import adapters, db, doorbell, ranks, receipts
from messaging.adapters import AccountChange, Ack, ChannelAdapter, Echo, ParsedEvent, UnreadableEvent
from messaging.faults import Point, reach
from messaging.models import Channel, WebhookEvent

log = logging.getLogger(__name__)

BATCH = 500
# Each holds an advisory lock until the batch is committed; the server has room for some thousands.
CHANNELS = 200
MAX_ATTEMPTS = 20
ECHO_RETRY_SECONDS = 2.0
OPEN = (WebhookEvent.State.RECEIVED, WebhookEvent.State.ERROR)


class NotYet(Exception):
    """The event can't be understood before something else has happened; it is looked at again soon."""


@dataclass(frozen=True, slots=True)
class Applied:
    """How many events a run was done with, and the channels at which another applier was."""

    number: int
    busy: Sequence[UUID] = ()


@dataclass(slots=True)
class _Item:
    """An event understood, on its way. ``acks``: what of it goes set-wise."""

    event: WebhookEvent
    channel: Channel
    adapter: ChannelAdapter
    parsed: ParsedEvent
    acks: list[Ack] = field(default_factory=list)

    @property
    def state(self) -> WebhookEvent.State:
        return WebhookEvent.State.APPLIED if self.parsed.updates else WebhookEvent.State.IGNORED


def answer(organization_id: UUID, *, now: datetime) -> None:
    """Apply what an organization was rung for. What fails holds up no other: the sweep rings for it again."""
    try:
        busy = apply_organization(organization_id, now=now).busy
    except Exception:
        log.exception("events of %s could not be applied", organization_id)
        connection.close()
        return
    if busy:
        # Whoever is there may have read its batch before the latest came.
        doorbell.ring_apply(organization_id)


def apply_organization(organization_id: UUID, *, now: datetime) -> Applied:
    """Apply what is open for all channels of one organization."""
    return apply_channels([row[0] for row in db.rows(_WAITING, {"organization": organization_id})], now=now)


def apply_channel(channel_id: UUID, *, now: datetime) -> int:
    """Apply the open events of one channel; how many were done."""
    return apply_channels([channel_id], now=now).number


def apply_channels(channel_ids: Sequence[UUID], *, now: datetime) -> Applied:
    """Apply the open events of these channels, a batch at a time.

    Where another applier is at a channel nothing is done for it here.
    """
    total, busy = 0, []
    ordered = sorted(set(channel_ids))
    for start in range(0, len(ordered), CHANNELS):
        page = ordered[start : start + CHANNELS]
        while page:
            share = max(BATCH // len(page), 1)
            with transaction.atomic():
                channels = _locked(page)
                busy += [channel_id for channel_id in page if channel_id not in channels]
                events = _open_events(channels.values(), share, now)
                if events:
                    _apply(events, channels, now)
            total += len(events)
            taken = Counter(event.channel_id for event in events)
            page = [channel_id for channel_id in page if taken[channel_id] == share]
    return Applied(total, busy)


# One probe of webhook_events_open for each channel that has any, however many events it has.
_WAITING = """
WITH RECURSIVE waiting AS (
  (SELECT channel_id FROM webhook_events_log
   WHERE organization_id = %(organization)s AND state IN ('received', 'error') AND channel_id IS NOT NULL
   ORDER BY channel_id LIMIT 1)
  UNION ALL
  SELECT (SELECT e.channel_id FROM webhook_events_log e
          WHERE e.organization_id = %(organization)s AND e.state IN ('received', 'error')
            AND e.channel_id > w.channel_id
          ORDER BY e.channel_id LIMIT 1)
  FROM waiting w WHERE w.channel_id IS NOT NULL
) SELECT channel_id FROM waiting WHERE channel_id IS NOT NULL
"""
_LOCKED = """
SELECT id, organization_id, kind FROM (
  SELECT id, organization_id, kind FROM channels WHERE id = ANY (%s) OFFSET 0
) AS wanted WHERE pg_try_advisory_xact_lock(hashtextextended(id::text, 1))
"""
_FIELDS = (
    "id", "channel_id", "body", "received_at", "state", "event_type", "attempts", "next_try_at", "error",
)  # fmt: skip
# A statement of its own, after the locks: its snapshot holds what another applier had done before it let go.
_EVENTS = f"""
SELECT event.* FROM unnest(%s::uuid[], %s::uuid[]) AS wanted (organization_id, channel_id) CROSS JOIN LATERAL (
  SELECT {", ".join(_FIELDS)} FROM webhook_events_log e
  WHERE e.organization_id = wanted.organization_id AND e.channel_id = wanted.channel_id
    AND e.state IN ('received', 'error') AND e.next_try_at <= %s
  ORDER BY e.id LIMIT %s FOR UPDATE SKIP LOCKED
) AS event ORDER BY event.channel_id, event.id
"""  # noqa: S608 - columns named here


def _locked(channel_ids: Sequence[UUID]) -> dict[UUID, Channel]:
    """The channels at which no other applier is, ours until the transaction ends."""
    return {
        key: Channel(id=key, organization_id=organization_id, kind=kind)
        for key, organization_id, kind in db.rows(_LOCKED, [list(channel_ids)])
    }


def _open_events(channels: Collection[Channel], share: int, now: datetime) -> list[WebhookEvent]:
    """Prepared: compiling a query costs as much as applying an ack."""
    organizations = [channel.organization_id for channel in channels]
    found = db.rows(_EVENTS, [organizations, [channel.pk for channel in channels], now, share])
    return [WebhookEvent.from_db(DEFAULT_DB_ALIAS, _FIELDS, row) for row in found]


def _apply(events: Sequence[WebhookEvent], channels: Mapping[UUID, Channel], now: datetime) -> None:
    """Acks go set-wise, everything else in a savepoint of its own: a poisoned event holds up no other."""
    items = [item for event in events if (item := _understand(event, channels, now)) is not None]
    known = _known_echoes(items)
    items = [item for item in items if _apply_one(item, known, now)]
    reach(Point.INSIDE_APPLY)
    _finish(_flush(items, now), now)


def _understand(event: WebhookEvent, channels: Mapping[UUID, Channel], now: datetime) -> _Item | None:
    assert event.channel_id is not None
    channel = channels[event.channel_id]
    adapter = adapters.for_kind(channel.kind)
    try:
        parsed = adapter.parse_webhook(bytes(event.body), channel_id=channel.pk, received_at=event.received_at)
    except UnreadableEvent as error:
        _fail(event, f"unreadable: {error}", now)
        return None
    except (ValueError, TypeError, LookupError) as error:
        _fail_oddly(event, error, now)
        return None
    event.event_type = parsed.type[:64]
    return _Item(event, channel, adapter, parsed)


def _known_echoes(items: Sequence[_Item]) -> set[tuple[UUID, str]]:
    """Which of the batch's echoes have an id that is a message's already: they say no more than its first ack."""
    wanted = [
        (item.channel.pk, update.provider_id)
        for item in items
        for update in item.parsed.updates
        if isinstance(update, Echo)
    ]
    return receipts.known(wanted)


def _apply_one(item: _Item, known: Collection[tuple[UUID, str]], now: datetime) -> bool:
    """Apply what is no ack, gather what is; whether the event is on its way still."""
    others: list[Echo | AccountChange] = []
    for update in item.parsed.updates:
        if isinstance(update, Ack):
            item.acks.append(update)
        elif isinstance(update, Echo) and (item.channel.pk, update.provider_id) in known:
            item.acks.append(Ack(update.provider_id, ranks.SENT, update.happened_at))
        else:
            others.append(update)
    if not others:
        return True
    try:
        with transaction.atomic():
            for update in others:
                if isinstance(update, Echo):
                    _apply_echo(item, update, now)
                else:
                    item.adapter.apply_account_change(item.channel.pk, update, now=now)
    except NotYet:
        item.event.next_try_at = now + timedelta(seconds=ECHO_RETRY_SECONDS)
        item.event.save(update_fields=["next_try_at"])
    except (DataError, IntegrityError, ValueError, TypeError, LookupError) as error:
        _fail_oddly(item.event, error, now)
    else:
        return True
    return False


def _apply_echo(item: _Item, echo: Echo, now: datetime) -> None:
    """An echo is ours by id, else by content; an unknown one waits while one of ours may still be it."""
    if receipts.match_echo(item.channel.pk, echo, item.adapter.addresses_of(echo.address)):
        return
    patience = timedelta(seconds=settings.ECHO_PATIENCE_SECONDS)
    if item.event.received_at + patience > now and receipts.is_lane_busy(item.channel.pk):
        raise NotYet
    receipts.record_external(item.channel, echo)


def _flush(items: list[_Item], now: datetime) -> list[_Item]:
    """All acks of the batch in one statement; one by one where one of them poisons it. What is done."""
    try:
        with transaction.atomic():
            receipts.apply_all([(item.channel.pk, ack) for item in items for ack in item.acks])
    except OperationalError:
        # A deadlock or a lost connection: the whole batch is taken again.
        raise
    except Error:
        log.exception("acks of a batch could not be applied together")
        return [item for item in items if _flush_alone(item, now)]
    return items


def _flush_alone(item: _Item, now: datetime) -> bool:
    try:
        with transaction.atomic():
            receipts.apply_acks(item.channel.pk, item.acks)
    except OperationalError:
        raise
    except Error as error:
        _fail(item.event, type(error).__name__, now)
        return False
    return True


_FINISH = """
UPDATE webhook_events_log w SET state = done.state, event_type = done.type, attempts = w.attempts + 1,
    applied_at = %s, next_try_at = NULL, error = ''
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS done (id, state, type) WHERE w.id = done.id
"""


def _finish(done: Sequence[_Item], now: datetime) -> None:
    if done:
        states, types = [str(item.state) for item in done], [item.event.event_type for item in done]
        db.rows(_FINISH, [now, [item.event.pk for item in done], states, types])


def _fail_oddly(event: WebhookEvent, error: Exception, now: datetime) -> None:
    # Types only: messages of such errors quote what people wrote.
    log.exception("webhook event %s could not be applied", event.pk)
    _fail(event, type(error).__name__, now)


def _fail(event: WebhookEvent, error: str, now: datetime) -> None:
    """Back-off of 2^n seconds, at most ten minutes; after MAX_ATTEMPTS it is dead and shown as such."""
    event.attempts += 1
    dead = event.attempts >= MAX_ATTEMPTS
    event.state = WebhookEvent.State.DEAD if dead else WebhookEvent.State.ERROR
    event.next_try_at = None if dead else now + timedelta(seconds=min(2.0**event.attempts, 600.0))
    event.error = error[:300]
    event.save(update_fields=["state", "event_type", "attempts", "next_try_at", "error"])
