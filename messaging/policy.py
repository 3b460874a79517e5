"""Rules into figures: one pure function. The gate compares what it returns with the clock, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from messaging import calendars
from messaging.rules import DEFAULTS, Rules


class Barred(StrEnum):
    """Why a number takes no broadcasts."""

    RESERVED = "channel_reserved"
    IN_WARMUP = "channel_in_warmup"


@dataclass(frozen=True, slots=True)
class Restriction:
    """WhatsApp restricts a number. ``ends_at``: when it ended or will; None where nobody knows yet."""

    code: str
    began_at: datetime
    ends_at: datetime | None

    def holds(self, now: datetime) -> bool:
        return self.began_at <= now and (self.ends_at is None or self.ends_at > now)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a channel. ``in_use_since`` is the older of its first day here and a declared one.

    ``failed_share``: of its messages of the last days (``rules.growth.failed_days``), those that failed.
    """

    time_zone: str
    in_use_since: date | None
    rules: Rules = DEFAULTS
    is_reserve: bool = False
    failed_share: float = 0.0
    restrictions: tuple[Restriction, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """What the lane's row holds. Gaps in seconds; times aware; caps in messages per day of the tenant.

    ``slowdown`` multiplies the gaps after automatic messages. ``barred``: why no broadcast leaves, until
    ``barred_until`` (None: nobody knows); ``restricted`` and its end likewise for people never written to before.
    ``figures_until``: from then on other figures hold.
    """

    gap: float
    gap_jitter: float
    broadcast_gap: float
    broadcast_gap_jitter: float
    slowdown: float
    open_from: datetime
    open_until: datetime
    day_starts_at: datetime
    day_ends_at: datetime
    cap_soft: int
    cap_hard: int
    cap_new: int
    barred: str
    barred_until: datetime | None
    restricted: str
    restricted_until: datetime | None
    figures_until: datetime


def first_day(zone: str, first_connected_at: datetime | None, declared: date | None) -> date | None:
    """The day a number's age counts from: since it first worked here, or an older declared one."""
    known = [] if declared is None else [declared]
    if first_connected_at is not None:
        known.append(first_connected_at.astimezone(ZoneInfo(zone)).date())
    return min(known, default=None)


def age_in_days(facts: Facts, now: datetime) -> int:
    """Full days since the number came into use, by the tenant's calendar; 0 where it never worked yet."""
    if facts.in_use_since is None:
        return 0
    return max((_today(facts, now) - facts.in_use_since).days, 0)


def broadcasts_from(facts: Facts, now: datetime) -> date | None:
    """The day from which the number is old enough for broadcasts; None where it is already."""
    age, needed = age_in_days(facts, now), facts.rules.broadcasts_from_day
    return None if age >= needed else _today(facts, now) + timedelta(days=needed - age)


def barred(facts: Facts, now: datetime) -> tuple[str, datetime | None]:
    """Why the number takes no broadcasts (empty: it does), and until when as far as that is known."""
    if facts.is_reserve:
        return Barred.RESERVED, None
    ready_on = broadcasts_from(facts, now)
    if ready_on is not None:
        return Barred.IN_WARMUP, calendars.day_start(ready_on, ZoneInfo(facts.time_zone))
    return "", None


def figures(facts: Facts, now: datetime, *, keep_open: float, spread: float, pace_scale: float = 1.0) -> Figures:
    """The figures that hold at ``now``. ``pace_scale`` multiplies gaps and ramps (settings.PACE_SCALE).

    ``keep_open``: seconds a send may take; a window that closes sooner counts as closed, and the next one is
    given. ``spread``: 0 ≤ x < 1, this lane's share of the spread of openings.
    """
    rules, zone = facts.rules, ZoneInfo(facts.time_zone)
    today = _today(facts, now)
    day_ends_at = calendars.day_start(today + timedelta(days=1), zone)
    opens_at, closes_at = window(facts, now, keep_open=keep_open, spread=spread)
    soft, hard = caps(facts, now)
    barred_by, barred_until = barred(facts, now)
    restricted_by, restricted_until = _restricted(facts, now)
    slowdown, slow_until = _slowdown(facts, now, pace_scale)
    changes = [moment for moment in (restricted_until, slow_until) if moment is not None]
    return Figures(
        gap=rules.any_pace.gap * pace_scale,
        gap_jitter=rules.any_pace.jitter * pace_scale,
        broadcast_gap=rules.broadcast_pace.gap * pace_scale,
        broadcast_gap_jitter=rules.broadcast_pace.jitter * pace_scale,
        slowdown=slowdown,
        open_from=opens_at,
        open_until=closes_at,
        day_starts_at=calendars.day_start(today, zone),
        day_ends_at=day_ends_at,
        cap_soft=soft,
        cap_hard=hard,
        cap_new=int(soft * rules.new_share),
        barred=barred_by,
        barred_until=barred_until,
        restricted=restricted_by,
        restricted_until=restricted_until,
        figures_until=min([day_ends_at, *changes]),
    )


def window(
    facts: Facts, now: datetime, *, keep_open: float, spread: float = 0.0, hours: tuple[time, time] | None = None
) -> tuple[datetime, datetime]:
    """The window that is open at ``now`` or the next one, spread: (from, until).

    ``hours``: other ones than the number's, on every day.
    """
    rules = facts.rules
    if hours is not None:
        rules = replace(rules, opens=hours[0], closes=hours[1], sundays=True, holidays="")
    opens_at, closes_at = calendars.window(rules, ZoneInfo(facts.time_zone), now, keep_open)
    return opens_at + timedelta(seconds=rules.opening_spread_seconds * spread), closes_at


def caps(facts: Facts, now: datetime) -> tuple[int, int]:
    """Messages per day, soft and hard. In the first days both are the warm-up's."""
    rules, age = facts.rules, age_in_days(facts, now)
    soft, hard = rules.cap_soft, rules.cap_hard
    if age < rules.warm_days:
        step = max((step for step in rules.warm_up if step.from_day <= age), key=lambda step: step.from_day)
        soft = hard = step.daily_cap
    elif _has_grown(facts, now):
        soft, hard = rules.growth.cap_soft, rules.growth.cap_hard
    if rules.daily_cap is not None:
        soft, hard = min(soft, rules.daily_cap), min(hard, rules.daily_cap)
    return soft, hard


def _has_grown(facts: Facts, now: datetime) -> bool:
    """Whether the number is old and has behaved: it may send more."""
    growth = facts.rules.growth
    since = now - timedelta(days=growth.unrestricted_days)
    restricted = any(
        each.began_at <= now and (each.ends_at is None or each.ends_at > since) for each in facts.restrictions
    )
    return age_in_days(facts, now) > growth.from_day and facts.failed_share < growth.failed_below and not restricted


def _restricted(facts: Facts, now: datetime) -> tuple[str, datetime | None]:
    """The code of the first signal that holds, and when the last known one ends; None where nobody knows."""
    holding = [each for each in facts.restrictions if each.holds(now)]
    if not holding:
        return "", None
    ends = [each.ends_at for each in holding if each.ends_at is not None]
    first = min(holding, key=lambda each: each.began_at)
    return first.code, max(ends) if len(ends) == len(holding) else None


def _slowdown(facts: Facts, now: datetime, pace_scale: float) -> tuple[float, datetime | None]:
    """By how much the lane is slower after a restriction, and until when."""
    ended = [each.ends_at for each in facts.restrictions if each.ends_at is not None and each.ends_at <= now]
    if not ended:
        return 1.0, None
    step_ends_at = max(ended)
    for step in facts.rules.ramp:
        step_ends_at += timedelta(seconds=step.seconds * pace_scale)
        if now < step_ends_at:
            return 1 / step.share, step_ends_at
    return 1.0, None


def _today(facts: Facts, now: datetime) -> date:
    return now.astimezone(ZoneInfo(facts.time_zone)).date()
