"""What the pacing rules make of a lane's work: how much leaves on which day, and when it is done. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from messaging import policy
from messaging.policy import Facts

# Further ahead a plan is worth nothing: a broadcast ends after at most 30 days. A day has up to three stretches.
_MOST_STRETCHES = 100


@dataclass(frozen=True, slots=True)
class Work:
    """What a lane has to do, and how it may: ``pace`` seconds each, within hours and daily cap.

    ``others``: how many messages each other broadcast still has on the lane; they take turns with ours.
    ``used``: messages of the lane's day that ``since`` belongs to. ``keep_open``: seconds that a send may take.
    """

    facts: Facts
    pace: float
    number: int
    used: int = 0
    others: Sequence[int] = ()
    keep_open: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """``days``: messages of ours by the tenant's day; ``finish_at`` is None where not all of them get a turn."""

    days: dict[date, int]
    finish_at: datetime | None

    @property
    def number(self) -> int:
        """How many get their turn."""
        return sum(self.days.values())


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time in which the lane sends without a break: ``number`` messages, all broadcasts together."""

    begins_at: datetime
    number: int


def make(work: Work, since: datetime, *, until: datetime | None = None) -> Plan:
    """The plan from ``since`` on; what can't leave before ``until`` gets no turn.

    People who are written to by hand make it later.
    """
    zone = ZoneInfo(work.facts.time_zone)
    days: dict[date, int] = {}
    done = ours = 0
    finish_at = since if work.number == 0 else None
    for stretch in _stretches(work, since, until):
        done += stretch.number
        now_ours = _share(work, done)
        if now_ours > ours:
            day = stretch.begins_at.astimezone(zone).date()
            days[day] = days.get(day, 0) + now_ours - ours
        ours = now_ours
        if ours == work.number and finish_at is None:
            finish_at = stretch.begins_at + timedelta(seconds=work.pace * stretch.number)
    return Plan(days, finish_at)


def _stretches(work: Work, since: datetime, until: datetime | None) -> Iterator[_Stretch]:
    left, used, moment = _together(work, work.number), work.used, since
    for _number in range(_MOST_STRETCHES):
        if left <= 0 or (until is not None and moment >= until):
            return
        figures = policy.figures(work.facts, moment, keep_open=work.keep_open, spread=0.0)
        if figures.open_from > moment:
            used = used if figures.open_from < figures.day_ends_at else 0
            moment = figures.open_from
            continue
        closes_at = min(figures.open_until, figures.day_ends_at)
        ends_at = closes_at if until is None else min(closes_at, until)
        by_time, by_cap = int((ends_at - moment).total_seconds() / work.pace), max(figures.cap_soft - used, 0)
        number = min(left, by_time, by_cap)
        yield _Stretch(moment, number)
        left -= number
        moment = figures.day_ends_at if by_cap <= by_time else ends_at
        used = used + number if moment < figures.day_ends_at else 0


def _together(work: Work, number: int) -> int:
    """How many messages the lane has sent once so many of ours are out: all broadcasts take turns."""
    return number + sum(min(number, other) for other in work.others)


def _share(work: Work, done: int) -> int:
    """How many of them are ours."""
    if not work.others:
        return min(done, work.number)
    ours = range(1, work.number + 1)
    return bisect.bisect_right(ours, done, key=lambda number: _together(work, number))
