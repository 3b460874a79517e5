"""What a broadcast waits for, and when it will be done if nothing else happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from broadcasts.models import Broadcast, Feed
from broadcasts.selectors import Tally
from messaging import lanes, policy, rules
from messaging.models import Lane
from messaging.policy import Facts

Status = Broadcast.Status

PAUSED = "broadcast_paused"
# Further ahead an estimate is worth nothing: a broadcast ends after at most 30 days.
_MOST_STRETCHES = 90


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why nothing leaves now, and until when; None where only an event can tell."""

    code: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """``finish_at`` is None where nobody can tell: paused, disconnected, or beyond its validity."""

    waiting_for: Waiting | None = None
    finish_at: datetime | None = None


def outlooks(broadcasts: Iterable[Broadcast], tallies: Mapping[UUID, Tally], now: datetime) -> dict[UUID, Outlook]:
    """The outlook of each, by id; one query for all of them."""
    wanted = {broadcast.pk: broadcast for broadcast in broadcasts}
    going = [pk for pk, broadcast in wanted.items() if broadcast.status in {Status.QUEUED, Status.SENDING}]
    found = {pk: Outlook(_pause(broadcast)) for pk, broadcast in wanted.items()}
    feeds: dict[UUID, list[Feed]] = {pk: [] for pk in going}
    rows = Feed.unscoped.filter(broadcast__in=going).select_related("channel__organization", "channel__lane")
    for feed in rows if going else ():
        if tallies[feed.broadcast_id].remaining.get(feed.channel_id):
            feeds[feed.broadcast_id].append(feed)
    for pk, busy in feeds.items():
        if busy:
            found[pk] = _outlook(wanted[pk], busy, tallies[pk].remaining, now)
    return found


def finish_at(*, facts: Facts, pace: float, number: int, used_today: int, now: datetime) -> datetime | None:
    """When a lane is done with so many messages at ``pace`` seconds each, by its window and its daily cap.

    Other broadcasts on the lane, and people who are written to by hand, make it later.
    """
    left, used, moment = number, used_today, now
    for _stretch in range(_MOST_STRETCHES):
        figures = policy.figures(facts, moment, keep_open=settings.SEND_DEADLINE_SECONDS, spread=0.0)
        if figures.open_from > moment:
            used = used if figures.open_from < figures.day_ends_at else 0
            moment = figures.open_from
            continue
        until = min(figures.open_until, figures.day_ends_at)
        by_time, by_cap = int((until - moment).total_seconds() / pace), max(figures.cap_soft - used, 0)
        if left <= min(by_time, by_cap):
            return moment + timedelta(seconds=pace * left)
        left -= min(by_time, by_cap)
        moment = figures.day_ends_at if by_cap <= by_time else until
        used = used + by_time if moment < figures.day_ends_at else 0
    return None


def _outlook(broadcast: Broadcast, feeds: Sequence[Feed], remaining: Mapping[UUID, int], now: datetime) -> Outlook:
    """Of the lanes that still have work: waiting only where all wait, done when the last one is."""
    waits = [_wait(feed.channel.lane, now) for feed in feeds]
    first = min(
        (wait for wait in waits if wait), key=lambda wait: (wait.until is None, wait.until or now), default=None
    )
    ends = [_end(feed, remaining[feed.channel_id], now) for feed in feeds]
    last = None if None in ends else max(end for end in ends if end)
    if last and broadcast.expires_at:
        last = min(last, broadcast.expires_at)
    return Outlook(first if all(waits) else None, last)


def _pause(broadcast: Broadcast) -> Waiting | None:
    return Waiting(broadcast.pause_code or PAUSED) if broadcast.status == Status.PAUSED else None


def _wait(lane: Lane, now: datetime) -> Waiting | None:
    """The gate's own words, read from the figures it compares with the clock."""
    if not lane.connected:
        return Waiting("channel_disconnected")
    if lane.holds:
        return Waiting(lane.holds[0])
    if lane.open_from > now:
        return Waiting("outside_window", lane.open_from)
    if lane.day_starts_at <= now < lane.day_ends_at and lane.used >= lane.cap_soft:
        return Waiting("daily_limit", lane.day_ends_at)
    return None


def _end(feed: Feed, number: int, now: datetime) -> datetime | None:
    lane = feed.channel.lane
    if not lane.connected or lane.holds:
        return None
    return finish_at(
        facts=lanes.facts_of(feed.channel),
        pace=mean_pace(lane),
        number=number,
        used_today=lane.used if lane.day_starts_at <= now < lane.day_ends_at else 0,
        now=now,
    )


def mean_pace(lane: Lane) -> float:
    """Seconds between two broadcast messages of the lane, on average."""
    # A lane that never connected has no figures yet.
    default = rules.DEFAULTS.broadcast_pace
    return lane.broadcast_gap + lane.broadcast_gap_jitter / 2 or default.gap + default.jitter / 2
