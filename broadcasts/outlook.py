"""What a broadcast waits for, and when it will be done if nothing else happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from django.conf import settings

from broadcasts import plan, selectors
from broadcasts.codes import WaitingCode
from broadcasts.models import Broadcast, Feed
from broadcasts.plan import Plan, Work
from broadcasts.selectors import Tally
from messaging import codes, history, rules, streams
from messaging import selectors as messages
from messaging.models import Channel, Lane, Message, Stream
from messaging.policy import Facts
from messaging.streams import Rest
from messaging.verdicts import MessageNow, PersonNow, StreamNow

Status = Broadcast.Status

# What is under way, or will be by itself.
_GOING = frozenset({Status.QUEUED, Status.SCHEDULED, Status.SENDING})
_PLANNED = _GOING | {Status.PENDING_REVIEW}


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why nothing leaves now, and until when; None where only an event can tell."""

    code: WaitingCode
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """``finish_at`` is None where nobody can tell: not approved, paused, disconnected, held.

    ``days``: messages by day of the tenant, were every number connected and the review over; ``too_late``: how
    many would not get their turn before the broadcast's end; ``lanes``: what each number waits for.
    """

    waiting_for: Waiting | None = None
    finish_at: datetime | None = None
    days: Mapping[date, int] = field(default_factory=dict, compare=False)
    too_late: int = field(default=0, compare=False)
    lanes: Sequence[Waiting | None] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class _Around:
    """What else is known when broadcasts are looked at: read once for all of them."""

    feeds: Mapping[UUID, Sequence[Feed]]
    others: Mapping[UUID, Mapping[UUID, int]]
    resting: Mapping[UUID, Rest]
    facts: Mapping[UUID, Facts]


def outlooks(broadcasts: Iterable[Broadcast], tallies: Mapping[UUID, Tally], now: datetime) -> dict[UUID, Outlook]:
    """The outlook of each, by id; as many queries for one as for all of them."""
    wanted = {broadcast.pk: broadcast for broadcast in broadcasts}
    around = _look_around([broadcast for broadcast in wanted.values() if broadcast.status in _PLANNED], tallies)
    return {pk: _outlook(broadcast, tallies[pk], around, now) for pk, broadcast in wanted.items()}


def _look_around(broadcasts: Sequence[Broadcast], tallies: Mapping[UUID, Tally]) -> _Around:
    feeds: dict[UUID, list[Feed]] = {broadcast.pk: [] for broadcast in broadcasts}
    if not broadcasts:
        return _Around(feeds, {}, {}, {})
    rows = Feed.unscoped.filter(broadcast__in=feeds).select_related("channel__organization", "channel__lane")
    for feed in rows.order_by("channel_id"):
        if tallies[feed.broadcast_id].remaining.get(feed.channel_id):
            feeds[feed.broadcast_id].append(feed)
    channels = {feed.channel_id: feed.channel for busy in feeds.values() for feed in busy}
    sending = [broadcast.stream_id for broadcast in broadcasts if broadcast.status == Status.SENDING]
    return _Around(
        feeds, selectors.work_on(channels.keys()), streams.resting(sending), history.facts(channels.values())
    )


def _outlook(broadcast: Broadcast, tally: Tally, around: _Around, now: datetime) -> Outlook:
    if broadcast.status == Status.PAUSED:
        return Outlook(Waiting(WaitingCode(broadcast.pause_code or WaitingCode.BROADCAST_PAUSED)))
    feeds = around.feeds.get(broadcast.pk)
    if not feeds:
        return Outlook()
    start = max(broadcast.scheduled_at or now, now)
    waits = [_wait(feed.channel, around.facts[feed.channel_id], broadcast.stream, start) for feed in feeds]
    plans = [_plan(broadcast, feed, tally, around, start) for feed in feeds]
    days: Counter[date] = Counter()
    for each in plans:
        days.update(each.days)
    is_open = broadcast.status in _GOING and not any(wait and wait.until is None for wait in waits)
    ends = [each.finish_at or broadcast.ends_at for each in plans]
    return Outlook(
        waiting_for=_first(broadcast, waits, tally, around, now),
        finish_at=max(ends) if is_open else None,
        days=dict(sorted(days.items())),
        too_late=sum(tally.remaining[feed.channel_id] for feed in feeds) - sum(each.number for each in plans),
        lanes=waits,
    )


def _first(
    broadcast: Broadcast, waits: Sequence[Waiting | None], tally: Tally, around: _Around, now: datetime
) -> Waiting | None:
    """Of the lanes that still have work: waiting only where all of them wait, and for what ends first."""
    if broadcast.status == Status.PENDING_REVIEW:
        return Waiting(WaitingCode.PENDING_REVIEW)
    if broadcast.status == Status.SCHEDULED:
        return Waiting(WaitingCode.SCHEDULED, broadcast.scheduled_at)
    known = [wait for wait in waits if wait is not None]
    if len(known) == len(waits):
        return _soonest(known, now)
    return _rest(broadcast, tally, around, now)


def _rest(broadcast: Broadcast, tally: Tally, around: _Around, now: datetime) -> Waiting | None:
    """Where the numbers could send: nothing of it is to leave yet, or nobody is left whom they may write to now."""
    rest = around.resting.get(broadcast.stream_id)
    if rest is None and tally.counts["queued"] + tally.counts["sending"]:
        return None
    if rest is not None and rest.until <= now:
        return None
    if tally.counts["pending"]:
        return _people_wait(around.feeds[broadcast.pk], around, now)
    return None if rest is None else _said(codes.waiting_outside(rest.code), rest.until)


def _wait(channel: Channel, facts: Facts, stream: Stream, now: datetime) -> Waiting | None:
    """The gate's own words, were it asked for somebody who is known to the organization."""
    lane = channel.lane
    if channel.state == Channel.State.ARCHIVED:
        return Waiting(WaitingCode.CHANNEL_ARCHIVED)
    hours = messages.stream_now(stream).hours
    asked = MessageNow(Message.Priority.BROADCAST, stream=StreamNow(hours=hours), person=PersonNow())
    wait = messages.wait_of(lane, facts, asked, now)
    if wait is None:
        return None
    until = max(lane.any_at, lane.broadcast_at) if wait.code == codes.WaitingCode.PACE else wait.until
    return _said(wait.code, until)


def _said(code: str, until: datetime | None) -> Waiting:
    """A message's word for what it waits for is a broadcast's word, too."""
    return Waiting(WaitingCode(code), until)


def _people_wait(feeds: Sequence[Feed], around: _Around, now: datetime) -> Waiting | None:
    """Why none of the numbers writes to anybody new; None where one does."""
    waits = [messages.closed_to_new_people(feed.channel.lane, around.facts[feed.channel_id], now) for feed in feeds]
    known = [_said(wait.code, wait.until) for wait in waits if wait is not None]
    return _soonest(known, now) if len(known) == len(waits) else None


def _soonest(waits: Sequence[Waiting], now: datetime) -> Waiting | None:
    return min(waits, key=lambda wait: (wait.until is None, wait.until or now), default=None)


def _used(lane: Lane, now: datetime) -> int:
    """Messages of the day; a day that is over has not been started anew yet."""
    return lane.used if lane.day_starts_at <= now < lane.day_ends_at else 0


def _plan(broadcast: Broadcast, feed: Feed, tally: Tally, around: _Around, start: datetime) -> Plan:
    lane = feed.channel.lane
    others = around.others.get(feed.channel_id, {})
    work = Work(
        facts=around.facts[feed.channel_id],
        pace=mean_pace(lane),
        number=tally.remaining[feed.channel_id],
        used=_used(lane, start),
        others=[number for other, number in others.items() if other != broadcast.stream_id],
        keep_open=settings.SEND_DEADLINE_SECONDS,
    )
    return plan.make(work, start, until=broadcast.ends_at)


def mean_pace(lane: Lane) -> float:
    """Seconds between two broadcast messages of the lane, on average."""
    if lane.rate is not None:
        return 1 / lane.rate
    # A lane that never connected has no figures yet.
    default = rules.DEFAULTS.broadcast_pace
    return (lane.broadcast_gap + lane.broadcast_gap_jitter / 2) * lane.slowdown or default.gap + default.jitter / 2
