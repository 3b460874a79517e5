"""Runs one program to its end, tied to this process as the supervised ones are."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable

from broadcast_project.supervisor.process import Process


def run_once(name: str, command: tuple[str, ...], *, log: Callable[[str, str], None], timeout: float) -> int:
    """Its exit status, -9 when it was killed for taking longer than `timeout` seconds."""
    popen = Process(name, command).spawn(os.environ)
    watchdog = threading.Timer(timeout, popen.kill)
    watchdog.start()
    try:
        return _follow(popen, name, log)
    finally:
        watchdog.cancel()
        popen.kill()
        popen.wait()


def _follow(popen: subprocess.Popen[bytes], name: str, log: Callable[[str, str], None]) -> int:
    assert popen.stdout is not None
    with popen.stdout as lines:
        for line in lines:
            log(name, line.decode(errors="replace").rstrip("\n"))
    return popen.wait()
