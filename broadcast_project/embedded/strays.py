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
_PROGRAMS = {"postgres", "initdb", "valkey-server"}


def await_end(folders: Iterable[Path], *, patience: float = 15.0) -> None:
    """Wait until no server works in these folders; from half of `patience` seconds on, kill them."""
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
    """Servers whose working folder is one of these: they and their children stand in their data."""
    wanted = {str(folder) for folder in folders}
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if str((entry / "cwd").readlink()) in wanted and _is_server(entry):
                    found.add(int(entry.name))
    return found


def _is_server(entry: Path) -> bool:
    """A person's shell may stand there too, and is nobody's to kill."""
    # A program that was replaced since, by an upgrade, reads "… (deleted)".
    program = (entry / "exe").readlink().name.removesuffix(" (deleted)")
    return program in _PROGRAMS
