"""Servers that an owner killed with -9 has left. The kernel told them to end; a few may still be at it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from broadcast_project.embedded.errors import EmbeddedError

_POLL = 0.05


def await_end(folders: Iterable[Path], *, patience: float = 15.0) -> None:
    """Wait until no process works in these folders; from half of `patience` seconds on, kill them."""
    folders = tuple(folders)
    began = time.monotonic()
    while left := processes_in(folders):
        waited = time.monotonic() - began
        if waited > patience:
            raise EmbeddedError(f"processes {sorted(left)} still use {folders[0].parent}; end them first")
        if waited > patience / 2:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL)


def processes_in(folders: Iterable[Path]) -> set[int]:
    """Processes whose working folder is one of these: the servers and their children stand in their data."""
    wanted = {str(folder) for folder in folders}
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if str((entry / "cwd").readlink()) in wanted:
                    found.add(int(entry.name))
    return found
