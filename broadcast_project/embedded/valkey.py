"""Valkey: its configuration, the process, and the two words we speak with it.

A TCP port of the loopback with a password, not a Unix socket: Celery's broker URL and redis-py spell sockets
differently (`redis+socket://`, `unix://`), so that one REDIS_URL could not serve both.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from broadcast_project.embedded.addresses import Credentials, write_private
from broadcast_project.embedded.errors import EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.supervisor import Process

NAME = "valkey"

# `force`: an append-only file that cannot be written must not keep a server alive whose owner was killed.
_CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir ./
daemonize no
databases 64
save ""
appendonly yes
appendfsync {appendfsync}
maxmemory-policy noeviction
shutdown-on-sigterm nosave force
shutdown-on-sigint nosave force
shutdown-timeout 2
"""


def configure(layout: Layout, credentials: Credentials, *, durable: bool) -> None:
    """Write the configuration; the password stands there and on no command line."""
    path = layout.valkey / "valkey.conf"
    appendfsync = "everysec" if durable else "no"
    write_private(
        path,
        _CONFIG.format(port=credentials.valkey_port, password=credentials.valkey, appendfsync=appendfsync),
    )
    if layout.user:
        os.chown(path, layout.user.uid, layout.user.gid)


def process(layout: Layout, program: Path, *, durable: bool) -> Process:
    """The server."""
    return Process(
        NAME,
        (str(program), "valkey.conf"),
        user=layout.user,
        cwd=layout.valkey,
        output=layout.log(NAME),
        death_signal=signal.SIGTERM if durable else signal.SIGKILL,
    )


def answers(credentials: Credentials) -> bool:
    """Whether it takes commands now (not while it loads its file)."""
    try:
        return ask(credentials, "PING") == "+PONG"
    except OSError:
        return False


def flush(credentials: Credentials) -> None:
    """Lose everything in every database."""
    reply = ask(credentials, "FLUSHALL SYNC")
    if reply != "+OK":
        raise EmbeddedError(f"valkey answered {reply}")


def ask(credentials: Credentials, command: str) -> str:
    """The first line of the answer to one inline command. OSError when nobody answers within 5 s."""
    with (
        socket.create_connection(("127.0.0.1", credentials.valkey_port), timeout=5) as connection,
        connection.makefile("r", newline="\r\n") as answers,
    ):
        connection.sendall(f"AUTH {credentials.valkey}\r\n{command}\r\n".encode())
        authenticated = answers.readline().strip()
        return answers.readline().strip() if authenticated == "+OK" else authenticated
