"""From a failed send to what to do next: one function over plain data."""

from __future__ import annotations

from dataclasses import dataclass

from messaging import rules
from messaging.adapters import ChannelError, Fault, Sent


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result``: not_sent (queued again after ``wait`` seconds), failed, or unknown.

    ``lane_wait``: seconds the whole lane rests; ``counts``: whether it costs one of the attempts.
    """

    result: str
    wait: float = 0.0
    lane_wait: float = 0.0
    counts: bool = False


def outcome(error: ChannelError, *, faults: int, failures: int, jitter: float) -> Outcome:
    """What follows from a failed attempt.

    ``faults``: attempts that counted so far; ``failures``: faults of lane or gateway in a row before this
    one; ``jitter``: 0 ≤ x < 1.
    """
    if error.sent is Sent.MAYBE:
        # Nothing ambiguous is repeated by the machine.
        return Outcome("unknown")
    if error.fault in {Fault.LANE, Fault.GATEWAY}:
        pause = min(rules.LANE_WAIT_BASE_SECONDS * 2.0 ** min(failures, 16), rules.LANE_WAIT_MAX_SECONDS)
        return Outcome("not_sent", lane_wait=max(error.retry_after or 0.0, pause))
    if error.permanent or faults + 1 >= rules.MAX_FAULTS:
        return Outcome("failed", counts=True)
    pause = min(rules.RETRY_BASE_SECONDS * 2.0 ** min(faults, 16), rules.RETRY_MAX_SECONDS)
    pause = min(pause * (1 + jitter / 2), rules.RETRY_MAX_SECONDS)
    return Outcome("not_sent", wait=max(error.retry_after or 0.0, pause), counts=True)
