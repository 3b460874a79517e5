"""The processes of a run: born by the nursery, killed, stopped, and born again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broadcast_project.supervisor import product
from messaging.faults import Point

# Which process passes which fault point.
POINTS: Mapping[str, tuple[Point, ...]] = {
    "worker": (
        Point.AFTER_GATE_COMMIT,
        Point.AFTER_REQUEST_WRITTEN,
        Point.AFTER_ANSWER_READ,
        Point.BEFORE_SETTLE_COMMIT,
        Point.AFTER_SETTLE,
        Point.INSIDE_APPLY,
    ),
    "dispatcher": (Point.AFTER_CLAIM_COMMIT, Point.AFTER_RING, Point.INSIDE_FEED),
    "beat": (),
    "web": (Point.BETWEEN_RAW_ROW_AND_APPLY, Point.AFTER_FREEZE),
}
_SELDOM = {Point.AFTER_FREEZE, Point.INSIDE_FEED}


@dataclass(slots=True)
class Beast:
    """One place of the herd, whoever fills it now."""

    name: str
    role: str
    extra: Mapping[str, Any]
    pid: int = 0
    point: str = ""
    born_at: float = 0.0
    stopped: bool = False
    killed: bool = False
    lives: int = 0


@dataclass(slots=True)
class Death:
    """``cause``: killed, the name of a fault point, or how it ended of itself."""

    name: str
    pid: int
    cause: str
    at: float


@dataclass(slots=True)
class Herd:
    """Keeps every place filled. ``deaths`` and ``stops`` (from, until, pid) are what may explain a doubt."""

    environment: Mapping[str, str]
    log: Path
    choice: random.Random
    beasts: dict[str, Beast] = field(default_factory=dict)
    deaths: list[Death] = field(default_factory=list)
    stops: list[tuple[float, float, int]] = field(default_factory=list)
    at_points: bool = True
    _turns: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _nursery: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin the nursery, and wait until it has imported the product."""
        command = (sys.executable, "-m", "chaos.nursery")
        self._nursery = subprocess.Popen(  # noqa: S603 - our own command line
            command,
            env=dict(self.environment),
            cwd=product.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("ab"),
        )
        assert self._nursery.stdout is not None
        if "ready" not in json.loads(self._nursery.stdout.readline() or "{}"):
            raise RuntimeError(f"the nursery did not start; see {self.log}")
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def add(self, name: str, role: str, **extra: Any) -> None:
        """A place, filled from now on."""
        self.beasts[name] = Beast(name, role, extra)
        self._bear(self.beasts[name])

    def stop(self) -> None:
        """End the nursery and, with it, all."""
        if self._nursery is not None and self._nursery.stdin is not None:
            self._nursery.stdin.close()
            self._nursery.wait(timeout=10)
            self._nursery = None

    def kill(self, name: str) -> bool:
        """Kill whoever fills the place; False where nobody does just now."""
        beast = self.beasts[name]
        with self._lock:
            if not beast.pid:
                return False
            beast.killed = True
            os.killpg(beast.pid, signal.SIGKILL)
            return True

    def freeze(self, name: str, seconds: float) -> bool:
        """Stop the process as it stands, and let it go on after so many seconds."""
        beast = self.beasts[name]
        with self._lock:
            if not beast.pid or beast.stopped:
                return False
            os.killpg(beast.pid, signal.SIGSTOP)
            beast.stopped = True
            pid = beast.pid
            self.stops.append((time.time(), time.time() + seconds, pid))
        timer = threading.Timer(seconds, self._thaw, [beast, pid])
        timer.daemon = True
        timer.start()
        return True

    def living(self, *, standing: bool = False) -> list[str]:
        """Names of the filled places; those that stand still are left alone unless asked for."""
        with self._lock:
            return [beast.name for beast in self.beasts.values() if beast.pid and (standing or not beast.stopped)]

    def _thaw(self, beast: Beast, pid: int) -> None:
        with self._lock, suppress(ProcessLookupError):
            if beast.pid == pid:
                beast.stopped = False
                os.killpg(pid, signal.SIGCONT)

    def _bear(self, beast: Beast) -> None:
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        beast.point = self._next_point(beast)
        request = {"name": beast.name, "role": beast.role, "log": str(self.log), "fault_point": beast.point}
        with suppress(BrokenPipeError, ValueError):
            self._nursery.stdin.write(json.dumps(request | dict(beast.extra)).encode() + b"\n")
            self._nursery.stdin.flush()

    def _next_point(self, beast: Beast) -> str:
        """Each second life ends at a point, in turn, if nothing ends it before: at its first to third passing.

        A life is seconds long; what is passed more seldom than that strikes at once.
        """
        beast.lives += 1
        points = POINTS[beast.role]
        if not points or not self.at_points or beast.lives % 2:
            return ""
        self._turns[beast.role] += 1
        point = points[self._turns[beast.role] % len(points)]
        return f"{point}:{1 if point in _SELDOM else self.choice.randint(1, 3)}"

    def _listen(self) -> None:
        assert self._nursery is not None
        assert self._nursery.stdout is not None
        for line in self._nursery.stdout:
            said = json.loads(line)
            with self._lock:
                if "born" in said:
                    beast = self.beasts[said["born"]]
                    beast.pid, beast.born_at, beast.stopped, beast.killed = said["pid"], time.time(), False, False
                else:
                    self._note(self.beasts[said["died"]], said)

    def _note(self, beast: Beast, said: Mapping[str, Any]) -> None:
        cause = f"exit {said['code']}"
        if beast.killed:
            cause = "killed"
        elif beast.point and (said["code"] == -signal.SIGKILL or beast.role == "web"):
            cause = beast.point.partition(":")[0]
        self.deaths.append(Death(beast.name, said["pid"], cause, time.time()))
        beast.pid = 0
        self._bear(beast)
