"""Named points at which tests of crashes kill the process. In production each is one comparison."""

from __future__ import annotations

import os
import signal
from collections import Counter
from enum import StrEnum

from django.conf import settings


class Point(StrEnum):
    """Where a crash is most telling (design: engine, section 7)."""

    AFTER_CLAIM_COMMIT = "after_claim_commit"
    AFTER_RING = "after_ring"
    AFTER_GATE_COMMIT = "after_gate_commit"
    AFTER_REQUEST_WRITTEN = "after_request_written"
    AFTER_ANSWER_READ = "after_answer_read"
    BEFORE_SETTLE_COMMIT = "before_settle_commit"
    AFTER_SETTLE = "after_settle"
    BETWEEN_RAW_ROW_AND_APPLY = "between_raw_row_and_apply"
    INSIDE_APPLY = "inside_apply"
    AFTER_FREEZE = "after_freeze"
    INSIDE_FEED = "inside_feed"


_passed: Counter[Point] = Counter()


def reach(point: Point) -> None:
    """Kill this process, as ``kill -9`` would, where FAULT_POINT names ``point`` (``name:n``: the n-th time)."""
    wanted = settings.FAULT_POINT
    if not wanted:
        return
    name, _, nth = wanted.partition(":")
    if name != point:
        return
    _passed[point] += 1
    if _passed[point] == int(nth or 1):
        os.kill(os.getpid(), signal.SIGKILL)
