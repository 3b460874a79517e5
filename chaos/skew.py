"""A process whose wall clock is off. Its monotonic clock, as everywhere, is right."""

from __future__ import annotations

import datetime as calendar
import sys
import time
from typing import Any


class _LikeDatetime(type(calendar.datetime)):  # type: ignore[misc]
    """Takes any date with a time for one of its own."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, calendar.datetime)


def ahead(seconds: float) -> None:
    """Put this process's wall clock ahead by so much, in whatever has been imported so far."""
    real_time, real_time_ns = time.time, time.time_ns
    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_time_ns() + int(seconds * 1e9)
    off = calendar.timedelta(seconds=seconds)

    class Skewed(calendar.datetime, metaclass=_LikeDatetime):
        @classmethod
        def now(cls, tz: calendar.tzinfo | None = None) -> Any:
            return calendar.datetime.now(tz) + off

    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is calendar.datetime and module is not calendar:
            module.datetime = Skewed  # type: ignore[attr-defined]
