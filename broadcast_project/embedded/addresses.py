"""Where the services are and who holds them: the small files under `var/` that every process reads."""

from __future__ import annotations

import fcntl
import json
import os
import random
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

from broadcast_project.embedded.errors import EmbeddedError
from broadcast_project.embedded.layout import Layout

_LOWEST_PORT = 16_384
_PORTS_TRIED = 64


@dataclass(frozen=True)
class Addresses:
    """`database_url` is the owner of the product's database, `redis_url` database 0 of the broker."""

    database_url: str
    redis_url: str


@dataclass(frozen=True)
class Credentials:
    """What is drawn once and kept, mode 0600. `superuser` is the password of PostgreSQL's role `postgres`."""

    superuser: str
    database: str
    valkey: str
    valkey_port: int


def addresses(layout: Layout) -> Addresses:
    """Where the services are, or will be. Reads only; before the first start nobody answers there."""
    return _addresses(layout, _read(layout) or Credentials("", "", "", 0))


def running(layout: Layout) -> Addresses | None:
    """The addresses, if a living process holds the services and has them ready. Else None."""
    held = _read(layout) if layout.ready.exists() and owner(layout) is not None else None
    return _addresses(layout, held) if held else None


def owner(layout: Layout) -> int | None:
    """The process that holds the services, 0 if not yet named. The lock is the truth, its text a label."""
    try:
        handle = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(handle, 20).strip() or 0)
    finally:
        os.close(handle)
    return None


def prepare(layout: Layout) -> Credentials:
    """The kept credentials with a port that is free now. Draws what is missing. Called by the owner only."""
    kept = _read(layout) or Credentials(_draw(), _draw(), _draw(), 0)
    credentials = replace(kept, valkey_port=_free_port(kept.valkey_port))
    write_private(layout.credentials, json.dumps(asdict(credentials), indent=1))
    return credentials


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner alone."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def kept_secret(state: Path, name: str, make: Callable[[], str]) -> str:
    """A secret drawn by `make` once and kept in a file of mode 0600; processes that race agree on one."""
    path = state / "secrets" / name
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{name}.{os.getpid()}")
        write_private(draft, make())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text()


def _addresses(layout: Layout, credentials: Credentials) -> Addresses:
    # The socket's folder stands in the query: libpq reads it there and so does django-environ, which leaves a
    # percent-encoded host as it is.
    database = f"postgres://broadcast:{credentials.database}@/broadcast?host={quote(str(layout.sockets))}"
    return Addresses(database, f"redis://:{credentials.valkey}@127.0.0.1:{credentials.valkey_port}/0")


def _read(layout: Layout) -> Credentials | None:
    with suppress(FileNotFoundError):
        return Credentials(**json.loads(layout.credentials.read_text()))
    return None


def _draw() -> str:
    return secrets.token_urlsafe(24)


def _free_port(wanted: int) -> int:
    """The wanted TCP port of the loopback if nobody has it, else another that is free.

    None of those that the kernel gives to outgoing connections: while the server is down, a client that tries again
    and again may get the very port it calls, connect to itself, and keep the server from coming back.
    """
    others = random.SystemRandom().sample(range(_LOWEST_PORT, _first_outgoing_port()), _PORTS_TRIED)
    for port in filter(None, (wanted, *others)):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise EmbeddedError(f"no free port on the loopback from {_LOWEST_PORT} on")


def _first_outgoing_port() -> int:
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 32768
    return lowest if lowest >= _LOWEST_PORT + _PORTS_TRIED else 65536
