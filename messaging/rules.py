"""Pacing and courtesy: every number here is a default (design: rules). Pure data, and how overrides change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import time
from typing import Any


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two messages of a lane: a fixed gap and a random part on top."""

    gap: float
    jitter: float

    def at_least(self, gap: float) -> Pace:
        return replace(self, gap=max(self.gap, gap))


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """From this day of a number's age on, so many messages a day."""

    from_day: int
    daily_cap: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What a number earns that is old and behaves: its caps, and what it takes to have them.

    ``failed_below``: share of its messages that failed within ``failed_days``.
    """

    from_day: int
    cap_soft: int
    cap_hard: int
    failed_below: float
    failed_days: int
    unrestricted_days: int


@dataclass(frozen=True, slots=True)
class RampStep:
    """After a restriction ended: this share of the pace, for so many seconds."""

    share: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one channel. ``opens == closes`` means open all day long.

    ``holidays``: a country, or country and state ("BR-SP"), whose holidays are kept; empty for none.
    ``daily_cap``: a cap of its own instead of both others, where it is lower (or was loosened).
    """

    any_pace: Pace
    broadcast_pace: Pace
    opens: time
    closes: time
    sundays: bool
    holidays: str
    warm_up: tuple[WarmUpStep, ...]
    warm_days: int
    broadcasts_from_day: int
    cap_soft: int
    cap_hard: int
    growth: Growth
    daily_cap: int | None
    # Of the cap of a day: people never written to before.
    new_share: float
    ramp: tuple[RampStep, ...]
    # Lanes of one zone do not all fire at the stroke of the opening.
    opening_spread_seconds: float


DEFAULTS = Rules(
    any_pace=Pace(1.2, 0.9),
    broadcast_pace=Pace(5.0, 2.5),
    opens=time(7, 0),
    closes=time(22, 0),
    sundays=True,
    holidays="",
    warm_up=(WarmUpStep(0, 50), WarmUpStep(3, 100), WarmUpStep(6, 200)),
    warm_days=14,
    broadcasts_from_day=7,
    cap_soft=300,
    cap_hard=500,
    growth=Growth(from_day=90, cap_soft=1000, cap_hard=1500, failed_below=0.03, failed_days=7, unrestricted_days=30),
    daily_cap=None,
    new_share=0.5,
    ramp=(RampStep(0.1, 1800.0), RampStep(0.3, 3600.0)),
    opening_spread_seconds=60.0,
)

# A single automatic message that could not leave for so long is no use any more.
SINGLE_VALID_SECONDS = 24 * 3600.0
# A restriction of which WhatsApp told no end.
RESTRICTION_SECONDS = 24 * 3600.0
# Attempts that fail by fault of recipient or content.
MAX_FAULTS = 5
RETRY_BASE_SECONDS = 10.0
RETRY_MAX_SECONDS = 900.0
# Waits of a lane after a fault of lane or gateway.
LANE_WAIT_BASE_SECONDS = 1.0
LANE_WAIT_MAX_SECONDS = 60.0
# Faults in a row that hold the lane until the gateway answers again.
BREAKER_FAILURES = 5
# The hold that they set (SQL: engine_settle).
BREAKER_HOLD = "gateway_failing"


@dataclass(frozen=True, slots=True)
class Overrides:
    """What an organization or a number changes of the rules above it; None leaves them as they are.

    Gaps in seconds; ``new_share`` a share of 1. ``loosened``: the fields that a super-admin let stand as they are
    given; of the others the tighter value holds.
    """

    gap: float | None = None
    broadcast_gap: float | None = None
    opens: time | None = None
    closes: time | None = None
    sundays: bool | None = None
    holidays: str | None = None
    daily_cap: int | None = None
    new_share: float | None = None
    broadcasts_from_day: int | None = None
    loosened: frozenset[str] = frozenset()


# Which of two values of an anti-ban rule is the tighter one.
_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    "gap": max,
    "broadcast_gap": max,
    "daily_cap": min,
    "new_share": min,
    "broadcasts_from_day": max,
}
ANTI_BAN = frozenset(_TIGHTER)


def under(base: Rules, overrides: Overrides) -> Rules:
    """The rules of a layer below ``base``: anti-ban rules only tighter, hours and calendar as they are given."""
    given = {name: _value(base, overrides, name) for name in ANTI_BAN}
    if "daily_cap" in overrides.loosened and overrides.daily_cap is not None:
        # A super-admin lets the number send so many, once it is warm.
        base, given["daily_cap"] = _capped_at(base, overrides.daily_cap), None
    return replace(
        base,
        any_pace=replace(base.any_pace, gap=given["gap"]),
        broadcast_pace=replace(base.broadcast_pace, gap=given["broadcast_gap"]),
        daily_cap=given["daily_cap"],
        new_share=given["new_share"],
        broadcasts_from_day=given["broadcasts_from_day"],
        opens=base.opens if overrides.opens is None else overrides.opens,
        closes=base.closes if overrides.closes is None else overrides.closes,
        sundays=base.sundays if overrides.sundays is None else overrides.sundays,
        holidays=base.holidays if overrides.holidays is None else overrides.holidays,
    )


def _capped_at(base: Rules, cap: int) -> Rules:
    growth = replace(base.growth, cap_soft=max(base.growth.cap_soft, cap), cap_hard=max(base.growth.cap_hard, cap))
    return replace(base, cap_soft=cap, cap_hard=max(base.cap_hard, cap), growth=growth)


def value_of(rules: Rules, name: str) -> Any:
    """The value that a field of Overrides stands for."""
    if name == "gap":
        return rules.any_pace.gap
    if name == "broadcast_gap":
        return rules.broadcast_pace.gap
    return getattr(rules, name)


def _value(base: Rules, overrides: Overrides, name: str) -> Any:
    now, given = value_of(base, name), getattr(overrides, name)
    if given is None:
        return now
    if name in overrides.loosened or now is None:
        return given
    return _TIGHTER[name](now, given)


def loosens(base: Rules, overrides: Overrides) -> list[str]:
    """The fields that would let more through than ``base`` does, in the order of Overrides."""
    found = [name for name in _ORDER if name in ANTI_BAN and _is_looser(base, overrides, name)]
    if not _is_within(base, overrides):
        found.append("opens")
    if overrides.sundays and not base.sundays:
        found.append("sundays")
    if overrides.holidays is not None and base.holidays and overrides.holidays != base.holidays:
        found.append("holidays")
    return found


_ORDER = tuple(name for name in Overrides.__slots__ if name != "loosened")


def _is_looser(base: Rules, overrides: Overrides, name: str) -> bool:
    now, given = value_of(base, name), getattr(overrides, name)
    return given is not None and now is not None and bool(_TIGHTER[name](now, given) != given)


def _is_within(base: Rules, overrides: Overrides) -> bool:
    opens = base.opens if overrides.opens is None else overrides.opens
    closes = base.closes if overrides.closes is None else overrides.closes
    if base.opens == base.closes:
        return True
    if opens == closes:
        return False
    first, last = _seconds(opens) - _seconds(base.opens), _seconds(closes) - _seconds(base.opens)
    return first % _DAY <= (last - 1) % _DAY < (_seconds(base.closes) - _seconds(base.opens)) % _DAY


_DAY = 24 * 3600


def _seconds(moment: time) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second
