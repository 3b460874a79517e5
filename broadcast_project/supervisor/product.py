"""The product's own processes, as `make run` and the demo run them; docker-compose.yml runs the same."""

from __future__ import annotations

import errno
import http.client
import socket
import sys
from pathlib import Path

from broadcast_project.supervisor.process import Process

ROOT = Path(__file__).resolve().parents[2]

_PYTHON = sys.executable
_CELERY = (_PYTHON, "-m", "celery", "-A", "broadcast_project")
_ENV = {"PYTHONUNBUFFERED": "1"}
# Whoever asks over HTTP is told soon that the database is away; its few threads are soon free for the next.
_WEB_ENV = {"DATABASE_POOL_WAIT_SECONDS": "3"}
_READY_PATH = "/health/ready"
_reserved: dict[tuple[str, int], socket.socket] = {}
# Seconds without a pulse after which a process counts as hanging. A worker's is longer than any send with its settle,
# the others' than the longest that they may wait for database and broker in one turn, or take to start.
PATIENCE = {"worker": 90.0, "dispatcher": 120.0, "beat": 180.0}


def processes(port: int, *, host: str = "127.0.0.1") -> tuple[Process, ...]:
    """Web on `host`:`port`, worker, dispatcher and beat."""
    return (
        Process("web", _web(host, port), env=_ENV | _WEB_ENV, cwd=ROOT),
        # SIGTERM lets it finish what it is sending, which has its own deadline, and gives back what it has not begun.
        # Not REMAP_SIGTERM=SIGQUIT: soft shutdown sleeps its whole timeout whenever any task is under way.
        Process("worker", _WORKER, env=_ENV, cwd=ROOT, patience=PATIENCE["worker"]),
        Process("dispatcher", manage("run_dispatcher"), env=_ENV, cwd=ROOT, patience=PATIENCE["dispatcher"]),
        Process("beat", (*_CELERY, "beat", "--pidfile="), env=_ENV, cwd=ROOT, patience=PATIENCE["beat"]),
    )


def manage(*arguments: str) -> tuple[str, ...]:
    """A management command of this checkout, by this Python."""
    return (_PYTHON, str(ROOT / "manage.py"), *arguments)


def ready(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether the web process says that it can serve. Asks over HTTP, for at most 5 s."""
    connection = http.client.HTTPConnection(_reachable(host), port, timeout=5)
    try:
        connection.request("GET", _READY_PATH, headers={"Host": "127.0.0.1"})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def reserve(port: int, *, host: str = "127.0.0.1") -> bool:
    """Take a port for the life of this process; False where another program has it.

    To look alone is not enough: of two installations that begin at once both find it free, and the slower one then
    takes the other's web process for its own.
    """
    if (host, port) in _reserved:
        return True
    claim = socket.socket(socket.AF_UNIX)
    try:
        # A name without a file: it goes with the process, however that ends, and holds between users too.
        claim.bind(f"\0broadcast-port-{host}:{port}")
    except OSError as error:
        claim.close()
        return error.errno != errno.EADDRINUSE and not taken(port, host=host)
    if taken(port, host=host):
        claim.close()
        return False
    _reserved[host, port] = claim
    return True


def taken(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether another program listens on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            # Anything else than "in use" is for the server itself to say: a HOST that is no address of ours.
            return error.errno == errno.EADDRINUSE
    return False


def _web(host: str, port: int) -> tuple[str, ...]:
    options = ["--interface", "wsgi", "--host", host, "--port", str(port), "--workers", "1", "--no-ws"]
    threads = ["--blocking-threads", "4", "--workers-kill-timeout", "20"]
    return (_PYTHON, "-m", "granian", *options, *threads, "broadcast_project.wsgi:application")


_QUEUES = "send,inbound,default"
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_WORKER = (*_CELERY, "worker", "-P", "threads", "-c", "16", "-Q", _QUEUES, *_QUIET)


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in {"", "0.0.0.0"} else host  # noqa: S104  compared, not bound
