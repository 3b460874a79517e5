"""Rules into figures: one pure function. The gate compares what it returns with the clock, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from messaging.rules import DEFAULTS, Rules


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a channel. ``in_use_since`` is the older of its first day here and a declared one."""

    time_zone: str
    in_use_since: date | None
    opens: time | None = None
    closes: time | None = None
    daily_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What the lane's row holds. Gaps in seconds; times aware; caps in messages per day of the tenant."""

    gap: float
    gap_jitter: float
    broadcast_gap: float
    broadcast_gap_jitter: float
    open_from: datetime
    open_until: datetime
    day_starts_at: datetime
    day_ends_at: datetime
    cap_soft: int
    cap_hard: int


def first_day(zone: str, first_connected_at: datetime | None, declared: date | None) -> date | None:
    """The day a number's age counts from: since it first worked here, or an older declared one."""
    known = [] if declared is None else [declared]
    if first_connected_at is not None:
        known.append(first_connected_at.astimezone(ZoneInfo(zone)).date())
    return min(known, default=None)


def rules_for(facts: Facts, defaults: Rules = DEFAULTS) -> Rules:
    """The rules of one channel: the defaults under its overrides."""
    return replace(
        defaults,
        opens=defaults.opens if facts.opens is None else facts.opens,
        closes=defaults.closes if facts.closes is None else facts.closes,
    )


def age_in_days(facts: Facts, now: datetime) -> int:
    """Full days since the number came into use, by the tenant's calendar; 0 where it never worked yet."""
    if facts.in_use_since is None:
        return 0
    return max((now.astimezone(ZoneInfo(facts.time_zone)).date() - facts.in_use_since).days, 0)


def broadcasts_from(facts: Facts, now: datetime, rules: Rules = DEFAULTS) -> date | None:
    """The day from which the number takes broadcasts; None where it does already."""
    age = age_in_days(facts, now)
    if age >= rules.broadcasts_from_day:
        return None
    today = now.astimezone(ZoneInfo(facts.time_zone)).date()
    return today + timedelta(days=rules.broadcasts_from_day - age)


def figures(facts: Facts, now: datetime, *, keep_open: float, spread: float, pace_scale: float = 1.0) -> Figures:
    """The figures that hold at ``now``. ``pace_scale`` multiplies gaps (settings.PACE_SCALE).

    ``keep_open``: seconds a send may take; a window that closes sooner counts as closed, and the next one is
    given. ``spread``: 0 ≤ x < 1, this lane's share of the spread of openings.
    """
    rules = rules_for(facts)
    zone = ZoneInfo(facts.time_zone)
    today = now.astimezone(zone).date()
    opens_at, closes_at = _window(rules, zone, now, keep_open)
    if opens_at > now:
        opens_at += timedelta(seconds=rules.opening_spread_seconds * spread)
    soft, hard = caps(facts, now, rules)
    return Figures(
        gap=rules.any_pace.gap * pace_scale,
        gap_jitter=rules.any_pace.jitter * pace_scale,
        broadcast_gap=rules.broadcast_pace.gap * pace_scale,
        broadcast_gap_jitter=rules.broadcast_pace.jitter * pace_scale,
        open_from=opens_at,
        open_until=closes_at,
        day_starts_at=_at(today, time(0), zone),
        day_ends_at=_at(today + timedelta(days=1), time(0), zone),
        cap_soft=soft,
        cap_hard=hard,
    )


def caps(facts: Facts, now: datetime, rules: Rules = DEFAULTS) -> tuple[int, int]:
    """Messages per day, soft and hard. In the first days both are the warm-up's; an override only tightens."""
    age = age_in_days(facts, now)
    soft, hard = rules.cap_soft, rules.cap_hard
    if age < rules.warm_days:
        soft = hard = max(
            (step for step in rules.warm_up if step.from_day <= age), key=lambda step: step.from_day
        ).daily_cap
    if facts.daily_cap is not None:
        soft, hard = min(soft, facts.daily_cap), min(hard, facts.daily_cap)
    return soft, hard


def _window(rules: Rules, zone: ZoneInfo, now: datetime, keep_open: float) -> tuple[datetime, datetime]:
    """The first window that is still open ``keep_open`` seconds from ``now``, or the next one to open.

    Windows may cross midnight; ``opens == closes`` is a window without end.
    """
    today = now.astimezone(zone).date()
    if rules.opens == rules.closes:
        return _at(today, time(0), zone), _at(today + timedelta(days=8), time(0), zone)
    needed = now + timedelta(seconds=keep_open)
    for offset in range(-1, 3):
        day = today + timedelta(days=offset)
        last = day if rules.closes > rules.opens else day + timedelta(days=1)
        opens_at, closes_at = _at(day, rules.opens, zone), _at(last, rules.closes, zone)
        if closes_at > needed and closes_at > opens_at:
            return opens_at, closes_at
    raise AssertionError("a window opens every day")


def _at(day: date, moment: time, zone: ZoneInfo) -> datetime:
    """A local time as an instant. One that a clock change skips is read with the offset from before it."""
    return datetime.combine(day, moment, tzinfo=zone).astimezone(ZoneInfo("UTC"))
