"""PostgreSQL: a data folder, the process, and whether it answers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from broadcast_project.embedded.addresses import Credentials
from broadcast_project.embedded.errors import EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.supervisor import Process, tied

NAME = "postgres"

_HBA = "# Nobody gets in without the password, not even from this machine.\nlocal all all scram-sha-256\n"

# Small, quiet, and leaving nothing outside the data folder: dynamic shared memory of a server killed with -9
# would stay in /dev/shm.
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "dynamic_shared_memory_type": "mmap",
    "huge_pages": "off",
    "io_method": "sync",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_statement": "none",
}
# For data that is thrown away: a crash of the machine may ruin it, a crash of the server may not.
_CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def create(layout: Layout, programs: Path, credentials: Credentials) -> None:
    """Make the data folder with its two roles and the database, all or nothing."""
    draft = layout.base / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if layout.user:
        os.chown(draft, layout.user.uid, layout.user.gid)
    initdb = ["--username=postgres", "--encoding=UTF8", "--auth=reject", "--no-sync", "--no-instructions"]
    # PostgreSQL's own C.UTF-8 orders and folds alike on every machine, whatever its C library has.
    locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    _run(layout, [str(programs / "initdb"), "-D", str(draft), *initdb, *locale])
    # Commands from standard input, so that no password stands in a list of arguments.
    single = [str(programs / "postgres"), "--single", "-D", str(draft), "-c", "fsync=off", "postgres"]
    for statement in _statements(credentials):
        _run(layout, single, statement + "\n")
    (draft / "pg_hba.conf").write_text(_HBA)
    draft.rename(layout.postgres)


def check_version(layout: Layout, programs: Path) -> None:
    """Refuse a data folder that another major version wrote."""
    try:
        found = (layout.postgres / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(f"{layout.postgres} is no data folder of PostgreSQL: move it away to begin anew") from None
    answer = subprocess.run(
        [programs / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
    )
    ours = answer.stdout.split()[-1].partition(".")[0]
    if found != ours:
        raise EmbeddedError(
            f"the data in {layout.postgres} was written by PostgreSQL {found}, this is {ours}, and nothing was changed."
            " The embedded database is for trying: move that folder away to begin anew. To keep the data go back to the"
            " older version and carry it over by a dump (docs/runbooks/upgrade-postgresql.md)"
        )


def forget_dead(layout: Layout) -> None:
    """Remove the lock files of a server that is gone. Its number may be another program's by now.

    Only for a folder in which no process works: PostgreSQL itself takes any living process of that number and
    user for the server, and would refuse to start.
    """
    for stale in (layout.postgres / "postmaster.pid", *layout.sockets.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)


def process(layout: Layout, programs: Path, *, durable: bool) -> Process:
    """The server. A killed owner means a fast shutdown, and for data that is thrown away an immediate one."""
    settings = _SETTINGS | ({} if durable else _CARELESS) | {"unix_socket_directories": f'"{layout.sockets}"'}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    return Process(
        NAME,
        (str(programs / "postgres"), "-D", str(layout.postgres), *options),
        env=_ENV,
        user=layout.user,
        cwd=layout.postgres,
        output=layout.log(NAME),
        stop_signal=signal.SIGINT if durable else signal.SIGQUIT,
        death_signal=signal.SIGINT if durable else signal.SIGQUIT,
    )


def answers(layout: Layout, programs: Path) -> bool:
    """Whether it takes connections now."""
    program = str(programs / "pg_isready")
    command = [program, "-q", "-t", "3", "-h", str(layout.sockets), "-p", "5432", "-U", "broadcast"]
    return subprocess.run(command, check=False, timeout=10, env=_ENV).returncode == 0


def _statements(credentials: Credentials) -> list[str]:
    return [
        f"ALTER ROLE postgres PASSWORD '{credentials.superuser}'",
        # It owns the database, makes the tests' databases, and may make the roles that a migration needs.
        f"CREATE ROLE broadcast LOGIN CREATEDB CREATEROLE PASSWORD '{credentials.database}'",
        "CREATE DATABASE broadcast OWNER broadcast",
    ]


def _run(layout: Layout, command: list[str], stdin: str = "") -> None:
    done = subprocess.run(
        tied(command, user=layout.user),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=layout.base,
        env=_ENV,
    )
    if done.returncode != 0 or "ERROR:" in done.stderr or "FATAL:" in done.stderr:
        raise EmbeddedError(f"PostgreSQL's data folder could not be made: {(done.stderr or done.stdout).strip()}")
