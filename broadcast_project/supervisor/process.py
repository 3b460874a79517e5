"""What a supervised process is, and how one is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from broadcast_project.supervisor.pulse import VARIABLE, Pulse

_LAUNCHER = Path(__file__).with_name("launch.py")
_UNDERTAKER = Path(__file__).with_name("undertaker.py")


@dataclass(frozen=True)
class User:
    """The unprivileged user a process runs as."""

    uid: int
    gid: int


def tied(command: Iterable[str], *, user: User | None = None, death_signal: int = signal.SIGKILL) -> list[str]:
    """The command line that runs a command as that user and ends it when this thread or process ends."""
    identity = f"{user.uid}:{user.gid}" if user else "-"
    launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), str(int(death_signal))]
    return [*launcher, identity, *command]


@dataclass(frozen=True)
class Process:
    """One program to keep alive.

    `env` is added to the supervisor's own. `output` is a file to append to; without one each line goes to the
    supervisor's log. `stop_signal` asks it to end, `death_signal` is what the kernel sends it when its
    supervisor is killed. With `patience` it must renew its pulse (see `pulse`) at least once in so many seconds,
    or it is ended and started again.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    user: User | None = None
    output: Path | None = None
    stop_signal: int = signal.SIGTERM
    death_signal: int = signal.SIGTERM
    patience: float | None = None

    def spawn(self, env: Mapping[str, str], pulse: Pulse | None = None) -> subprocess.Popen[bytes]:
        """Start it in a session of its own. Its parent is the calling *thread*: both end together."""
        output = self._open_output()
        try:
            return subprocess.Popen(
                tied(self.command, user=self.user, death_signal=self.death_signal),
                env={**env, **self.env, **({VARIABLE: pulse.path} if pulse else {})},
                pass_fds=[pulse.file] if pulse else [],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            if output != subprocess.PIPE:
                os.close(output)

    def _open_output(self) -> int:
        if self.output is None:
            return subprocess.PIPE
        return os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class Undertaker:
    """The process that ends the groups of a killed supervisor, `grace` seconds after. See its script."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._groups: set[int] = set()
        self._popen: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Name a group it must not outlive."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Take a group that ended off the list, before its number can mean another."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def dismiss(self) -> None:
        """Let it go. The groups still named are ended as if the supervisor had been killed."""
        if self._popen is not None and self._popen.stdin is not None:
            self._popen.stdin.close()
            self._popen.wait()
            self._popen = None

    def _tell(self, line: str) -> None:
        # If it was killed this very moment, or none can be had, the next line finds out and hires another.
        with suppress(OSError):
            if self._popen is None or self._popen.poll() is not None:
                self._popen = self._hire()
                line = "".join(f"+{group}\n" for group in self._groups)
            assert self._popen.stdin is not None
            self._popen.stdin.write(line.encode())

    def _hire(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", str(_UNDERTAKER), str(self._grace)]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            start_new_session=True,
        )
