"""What the gateway and the network do to calls, answers, acks, echoes and webhooks: drawn anew every few seconds."""

from __future__ import annotations

import random
import time
from typing import Any

from broadcast_project.demo.client import Client

# Each with the share of what it meets that it strikes. None of them lets a message leave after its call's deadline.
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "reset", "acted": False, "probability": 0.2},
    {"kind": "reset", "acted": True, "probability": 0.2},
    {"kind": "close", "acted": True, "probability": 0.2},
    {"kind": "status", "status": 500, "acted": True, "probability": 0.2},
    {"kind": "status", "status": 500, "acted": False, "probability": 0.2},
    {"kind": "status", "status": 429, "acted": False, "retry_after": 1, "probability": 0.2},
    {"kind": "hang", "acted": True, "seconds": 5.0, "probability": 0.1},
    {"kind": "empty", "acted": True, "probability": 0.2},
    {"kind": "garbage", "acted": True, "probability": 0.2},
    {"kind": "delay_before", "seconds": 1.5, "probability": 0.5},
    {"kind": "delay_after", "seconds": 1.5, "probability": 0.5},
    {"kind": "echo", "order": "none", "probability": 0.5},
    {"kind": "echo", "order": "before", "probability": 0.5},
    {"kind": "echo", "order": "late", "seconds": 3.0, "probability": 0.5},
    {"kind": "drop_acks", "acks": [1, 2, 3], "probability": 0.3},
    {"kind": "late_acks", "seconds": 3.0, "probability": 0.5},
    {"kind": "duplicate_acks", "times": 3, "probability": 0.5},
    {"kind": "reverse_acks", "probability": 0.5},
    {"kind": "webhook_duplicate", "times": 2, "fresh": True, "probability": 0.5},
    {"kind": "webhook_drop", "probability": 0.2},
    {"kind": "webhook_late", "seconds": 3.0, "probability": 0.3},
)
LASTS_SECONDS = 4.0
# After these nobody knows whether the message left.
_OPEN_ENDED = {"reset", "close", "status", "hang", "empty", "garbage"}


class Weather:
    """Sets faults at the simulator, and remembers which."""

    def __init__(self, simulator: Client, choice: random.Random) -> None:
        self._simulator, self._choice = simulator, choice
        self.set: dict[str, int] = {}
        # When an answer might leave it open whether the message left: (from, until), in epoch seconds.
        self.spoilt: list[tuple[float, float]] = []

    def change(self) -> None:
        """Two more faults, for some seconds."""
        for fault in self._choice.sample(FAULTS, 2):
            self._simulator.post("/control/faults", {**fault, "lasts": LASTS_SECONDS})
            name = fault["kind"]
            self.set[name] = self.set.get(name, 0) + 1
            if name in _OPEN_ENDED:
                self.spoilt.append((time.time(), time.time() + LASTS_SECONDS))
