"""A full disk is named, loses nothing, and is forgotten once there is room. On a small file system of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import requests

from broadcast_project.demo.stage import free_port
from broadcast_project.embedded import Embedded, EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.supervisor import Supervisor, product
from tests.services.conftest import ROOT, servers
from tests.waiting import until

_SERVICES = ("database", "disk", "broker")
_ROW = "INSERT INTO kept SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 250)"
_MEGABYTE = 1024 * 1024


@contextmanager
def disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of that size where the data will lie."""
    folder.mkdir(mode=0o711)
    options = f"size={megabytes}m,mode=0711"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mounts() -> bool:
    """Whether we may mount one at all."""
    if os.geteuid() != 0:
        return False
    probe = Path(f"/var/tmp/broadcast-mount-{os.getpid()}")
    try:
        with disk(probe, 1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        with suppress(OSError):
            probe.rmdir()


def fill(folder: Path) -> Path:
    """Leave no room there; the file that takes it."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"\0" * _MEGABYTE) == _MEGABYTE:
            pass
    return filler


if mounts():

    def test_start_on_a_full_disk_says_what_to_do(state: Path) -> None:
        base = Layout.of(state, "main").base
        with disk(base.parent, 8):
            with pytest.raises(
                EmbeddedError, match=rf"(?s)disk of {base} is full \(\d MB free\): make room there.*No space"
            ):
                Embedded(state).start()
            fill(base.parent)
            with pytest.raises(EmbeddedError, match="is full"):
                Embedded(state).start()
            assert not servers(state)

    def test_product_on_a_full_disk_says_so_and_goes_on_when_there_is_room(state: Path) -> None:
        with stage(state) as (folder, url, port, _said):
            written = write(url)
            filler = fill(folder)
            written += write_until_refused(url, _ROW)
            assert until(lambda: checks(port)["disk"] == "full: the database can write nothing"), checks(port)
            # It still answers, only takes nothing.
            assert checks(port)["database"] == "ok"

            filler.unlink()
            assert until(lambda: set(checks(port).values()) == {"ok"}, timeout=60), checks(port)
            assert rows(url) == written
            assert write(url) == 10

    def test_database_that_finds_no_room_for_its_log_returns_by_itself(state: Path) -> None:
        with stage(state) as (folder, url, port, said):
            written = write(url)
            filler = fill(folder)
            # Takes no room but in the log that is written ahead, where a refusal ends the server.
            write_until_refused(url, "SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000000))")
            assert until(lambda: len(said) > 1), said
            assert "postgres ended (" in said[0]
            assert f"the disk of {Layout.of(state, 'main').base} is full" in said[1]

            filler.unlink()
            assert until(lambda: set(checks(port).values()) == {"ok"}, timeout=60), checks(port)
            assert rows(url) == written
            assert write(url) == 10


@contextmanager
def stage(state: Path) -> Iterator[tuple[Path, str, int, list[str]]]:
    """Services on a small disk, with a web process over them: folder, URL of the database, port, what was said."""
    said: list[str] = []
    services, port = Embedded(state, say=said.append), free_port()
    folder = Layout.of(state, "main").base.parent
    with disk(folder, 200), services as addresses:
        env = {**os.environ, "DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url}
        migrate = [sys.executable, "manage.py", "migrate_locked"]
        subprocess.run(migrate, cwd=ROOT, env=env, check=True, capture_output=True)
        web = [process for process in product.processes(port) if process.name == "web"]
        with Supervisor(web, env=env) as supervisor:
            supervisor.wait_ready(lambda: product.ready(port))
            yield folder, addresses.database_url, port, said


def write(url: str) -> int:
    """Write some rows, each committed; how many."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (text text STORAGE EXTERNAL)")
        for _ in range(10):
            connection.execute(_ROW)
    return 10


def write_until_refused(url: str, statement: str) -> int:
    """Write until there is no room; how often the database said that it had."""
    written = 0
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
        while True:
            connection.execute(statement)
            written += 1
    return written


def rows(url: str) -> int:
    with psycopg.connect(url) as connection:
        return int(connection.execute("SELECT count(*) FROM kept").fetchall()[0][0])


def checks(port: int) -> dict[str, str]:
    """What readiness says of the services; worker, dispatcher and beat do not run here."""
    answer = requests.get(f"http://127.0.0.1:{port}/health/ready", timeout=10)
    found = answer.json()["checks"]
    assert answer.status_code == (200 if set(found.values()) == {"ok"} else 503)
    return {part: found[part] for part in _SERVICES}
