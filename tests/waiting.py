"""Waiting for what another process does: poll a condition, give up at a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_POLL = 0.02


def until(condition: Callable[[], bool], *, timeout: float = 15.0) -> bool:
    """Whether the condition came true within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(_POLL)
    return True
