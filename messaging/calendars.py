"""Days and hours in which automatic messages may leave: windows, Sundays, holidays. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import holidays

from messaging.rules import Rules

_SUNDAY = 6
_UTC = ZoneInfo("UTC")
# As far as a window without end is told, and as far as the next one is looked for.
_DAYS_TOLD = 8
_DAYS_LOOKED = 60


def window(rules: Rules, zone: ZoneInfo, now: datetime, keep_open: float) -> tuple[datetime, datetime]:
    """The first time of opening that is still open ``keep_open`` seconds from ``now``: (from, until).

    A window may cross midnight, but not into a day that is closed; ``opens == closes`` is open all day long.
    """
    today = now.astimezone(zone).date()
    needed = now + timedelta(seconds=keep_open)
    opened: tuple[datetime, datetime] | None = None
    for begins, ends in _pieces(rules, zone, today):
        if opened is not None and begins == opened[1]:
            opened = (opened[0], ends)
        elif opened is not None and opened[1] > needed:
            return opened
        else:
            opened = (begins, ends)
        if ends > needed + timedelta(days=_DAYS_TOLD):
            break
    if opened is None or opened[1] <= needed:
        # Hours that hold on no day of two months: closed for as long.
        far = day_start(today + timedelta(days=_DAYS_LOOKED), zone)
        return far, far + timedelta(days=1)
    return opened


def _pieces(rules: Rules, zone: ZoneInfo, today: date) -> Iterator[tuple[datetime, datetime]]:
    """The open times of each day, in order; what crosses midnight in two pieces that touch."""
    for offset in range(-1, _DAYS_LOOKED):
        day = today + timedelta(days=offset)
        if is_closed(rules, day):
            continue
        midnight, next_midnight = day_start(day, zone), day_start(day + timedelta(days=1), zone)
        if rules.opens == rules.closes:
            yield midnight, next_midnight
            continue
        opens, closes = instant(day, rules.opens, zone), instant(day, rules.closes, zone)
        if rules.opens < rules.closes:
            pieces = [(opens, closes)]
        else:
            # The morning belongs to the evening before.
            evening_before = [] if is_closed(rules, day - timedelta(days=1)) else [(midnight, closes)]
            pieces = [*evening_before, (opens, next_midnight)]
        yield from ((begins, ends) for begins, ends in pieces if begins < ends)


def is_closed(rules: Rules, day: date) -> bool:
    """Whether nothing automatic leaves on this day at all."""
    if not rules.sundays and day.weekday() == _SUNDAY:
        return True
    return bool(rules.holidays) and day in _holidays(rules.holidays, day.year)


@lru_cache(maxsize=256)
def _holidays(region: str, year: int) -> frozenset[date]:
    country, _, state = region.partition("-")
    return frozenset(holidays.country_holidays(country, subdiv=state or None, years=year))


def regions() -> list[str]:
    """Whose holidays can be kept: Brazil and its states."""
    return ["BR", *(f"BR-{state}" for state in sorted(holidays.country_holidays("BR").subdivisions))]


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """The day's first instant."""
    return instant(day, time(0), zone)


def instant(day: date, moment: time, zone: ZoneInfo) -> datetime:
    """A local time as an instant. One that a clock change skips is read with the offset from before it."""
    return datetime.combine(day, moment, tzinfo=zone).astimezone(_UTC)
