"""`make run`: embedded services if none are named, migrations, then web, worker, dispatcher and beat.

Reads PORT (default 8000) and HOST (default 127.0.0.1). SIGTERM or Ctrl-C stops all within 30 s. Exit status 0
when it was told to stop, 1 when something could not start, 2 when the port is taken.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from broadcast_project.embedded import EmbeddedError, available
from broadcast_project.supervisor import Supervisor, SupervisorError, product, run_once

_MIGRATE_TIMEOUT = 600.0
_READY_TIMEOUT = 120.0


def main() -> int:
    """Run the product until a signal."""
    host, port = os.environ.get("HOST", "127.0.0.1"), _port()
    if not product.reserve(port, host=host):
        _say("run", f"port {port} is taken by another program: end that, or set PORT to a free one")
        return 2
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        with available(say=lambda line: _say("run", line)):
            return _serve(host, port)
    except (EmbeddedError, SupervisorError) as exc:
        _say("run", str(exc))
        return 1
    except KeyboardInterrupt:
        return 0


def _serve(host: str, port: int) -> int:
    if run_once("migrate", product.manage("migrate_locked"), log=_say, timeout=_MIGRATE_TIMEOUT) != 0:
        _say("run", "the migrations failed, nothing was started")
        return 1
    with Supervisor(product.processes(port, host=host), log=_say) as supervisor:
        try:
            supervisor.wait_ready(lambda: product.ready(port, host=host), timeout=_READY_TIMEOUT)
        except SupervisorError as exc:
            # A database that is away for a while is no reason to give up: /health/ready says what is missing.
            _say("run", f"not ready yet: {exc}")
        else:
            _say("run", f"ready: http://{host}:{port}/")
        supervisor.wait()
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # One is enough: a second must not break off the stopping.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _say("run", "stopping")
    raise KeyboardInterrupt


def _port() -> int:
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        sys.exit(f"PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)


def _say(name: str, line: str) -> None:
    # Whoever read this may be gone; that must not end what runs.
    with suppress(BrokenPipeError):
        sys.stdout.write(f"{name:<10} | {line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
