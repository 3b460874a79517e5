"""What a supervised process is, and how one is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class User:
    """The unprivileged user a process runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Process:
    """One program to keep alive.

    `env` is added to the supervisor's own. `output` is a file to append to; without one each line goes to the
    supervisor's log. `stop_signal` asks it to end, `death_signal` is what the kernel sends it when its
    supervisor is killed.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    user: User | None = None
    output: Path | None = None
    stop_signal: int = signal.SIGTERM
    death_signal: int = signal.SIGTERM

    def spawn(self, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start it in a session of its own. Its parent is the calling *thread*: both end together."""
        user = f"{self.user.uid}:{self.user.gid}" if self.user else "-"
        shim = [
            sys.executable,
            "-I",
            "-S",
            str(_LAUNCHER),
            str(os.getpid()),
            str(int(self.death_signal)),
            user,
        ]
        output = self._open_output()
        try:
            return subprocess.Popen(
                [*shim, *self.command],
                env={**env, **self.env},
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
