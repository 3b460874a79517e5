"""Pacing and courtesy: every number here is a default (design: rules). Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two messages of a lane: a fixed gap and a random part on top."""

    gap: float
    jitter: float


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """From this day of a number's age on, so many messages a day."""

    from_day: int
    daily_cap: int


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one channel. ``opens == closes`` means open all day long."""

    any_pace: Pace
    broadcast_pace: Pace
    opens: time
    closes: time
    warm_up: tuple[WarmUpStep, ...]
    warm_days: int
    broadcasts_from_day: int
    cap_soft: int
    cap_hard: int
    # Lanes of one zone do not all fire at the stroke of the opening.
    opening_spread_seconds: float


DEFAULTS = Rules(
    any_pace=Pace(1.2, 0.9),
    broadcast_pace=Pace(5.0, 2.5),
    opens=time(7, 0),
    closes=time(22, 0),
    warm_up=(WarmUpStep(0, 50), WarmUpStep(3, 100), WarmUpStep(6, 200)),
    warm_days=14,
    broadcasts_from_day=7,
    cap_soft=300,
    cap_hard=500,
    opening_spread_seconds=60.0,
)

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
