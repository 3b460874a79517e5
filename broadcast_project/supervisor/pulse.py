"""The pulse of a process: a file whose time of change is when it last did its work. Standard library only.

A process may live and do nothing: a consumer that lost its broker without a word, a loop that hangs. Whoever
starts it names a file in PULSE_FILE, and ends the process when the file grows old. The time is the machine's
monotonic clock, so that setting its clock ends nobody, and changing it takes no room on a full disk.

As a program it is the health check of a container, which ends what is silent so that Docker starts it again:

    python -m broadcast_project.supervisor.pulse PATIENCE_SECONDS
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "PULSE_FILE"
# Between asking a silent process to end and ending it.
GRACE = 5.0
# An observer that stood still this long itself can't tell who else did.
_OWN_GAP = 5.0


def renew() -> None:
    """Say that work gets done. Does nothing where nobody asks, and never fails."""
    if path := os.environ.get(VARIABLE):
        with suppress(OSError):
            _touch(path)


def _touch(path: str) -> None:
    now = time.monotonic_ns()
    try:
        os.utime(path, ns=(now, now))
    except FileNotFoundError:
        Path(path).write_text(str(os.getpid()))
        os.utime(path, ns=(now, now))


class Pulse:
    """The observer's end, in memory: no file lies about when the observer is killed."""

    def __init__(self) -> None:
        self.file = os.memfd_create("pulse")
        self._value = self._read()
        self._heard_at = self._asked_at = time.monotonic()

    @property
    def path(self) -> str:
        """What the process that inherits `file` calls it."""
        return f"/proc/self/fd/{self.file}"

    def silence(self, now: float) -> float:
        """Seconds since it was last seen to change, less those in which nobody looked."""
        gap = now - self._asked_at
        self._asked_at = now
        if (value := self._read()) != self._value:
            self._value, self._heard_at = value, now
        elif gap > _OWN_GAP:
            self._heard_at += gap
        return now - self._heard_at

    def close(self) -> None:
        """Let go of it."""
        os.close(self.file)

    def _read(self) -> int:
        return os.fstat(self.file).st_mtime_ns


def main(arguments: list[str]) -> int:
    """0 while the pulse is younger than the patience; else 1, and the silent process is ended."""
    path = Path(os.environ.get(VARIABLE, ""))
    try:
        age = time.monotonic() - path.stat().st_mtime_ns / 1e9
        pid = int(path.read_text())
    except (OSError, ValueError):
        sys.stdout.write("no pulse yet\n")
        return 1
    if age <= float(arguments[0]):
        return 0
    # A file that is older than the process is from the container's life before.
    if age > _age_of(pid):
        sys.stdout.write("no pulse yet\n")
        return 1
    sys.stdout.write(f"silent for {age:.0f} s: ending process {pid}\n")
    sys.stdout.flush()
    _end(pid)
    return 1


def _age_of(pid: int) -> float:
    """Seconds since the process began; 0 where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def _end(pid: int) -> None:
    """Ask, and then insist: one that was stopped hears only SIGKILL."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
