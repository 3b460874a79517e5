"""`make run`, whole: the four processes over services of their own."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from broadcast_project.embedded import Embedded
from broadcast_project.supervisor import product
from tests.services.conftest import ROOT
from tests.waiting import until


@pytest.fixture
def services(tmp_path: Path) -> Iterator[dict[str, str]]:
    with Embedded(tmp_path, durable=False) as addresses:
        yield {"DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url}


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Run:
    """`python -m broadcast_project.supervisor`, and what it says."""

    def __init__(self, port: int, env: Mapping[str, str]) -> None:
        self.port = port
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "broadcast_project.supervisor"],
            cwd=ROOT,
            env={**os.environ, **env, "PORT": str(port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def says(self, words: str, *, timeout: float = 60.0) -> bool:
        """Whether a line with these words comes, or came, in time."""
        return until(lambda: any(words in line for line in self._heard()), timeout=timeout)

    def children(self) -> dict[int, str]:
        """Every process below it, with its command line."""
        return {pid: _command(pid) for pid in _below(self.popen.pid)}

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def _heard(self) -> list[str]:
        while not self._lines.empty():
            self.said.append(self._lines.get())
        return self.said

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self._lines.put(line)


def _below(pid: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in {"Z", "X"}:
                parents[int(entry.name)] = int(fields[1])
    found = {pid}
    while grown := {child for child, parent in parents.items() if parent in found} - found:
        found |= grown
    return found - {pid}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _same(processes: Mapping[int, str]) -> list[str]:
    """Those of them that still run."""
    return [command for pid, command in processes.items() if command and _command(pid) == command]


@pytest.fixture
def run(port: int, services: dict[str, str]) -> Iterator[Run]:
    started = Run(port, services)
    yield started
    started.end()


def _pids_of(run: Run, part: str) -> list[int]:
    return [pid for pid, command in run.children().items() if re.search(part, command)]


def _pid_of(run: Run, part: str) -> int:
    return min(_pids_of(run, part), default=0)


def test_ready_restarts_what_dies_and_stops(run: Run) -> None:
    assert run.says("ready: http://127.0.0.1:"), run.said[-20:]
    for name, part in (("worker", "celery .*worker"), ("dispatcher", "run_dispatcher"), ("beat", "celery .*beat")):
        before = _pid_of(run, part)
        assert before, part
        os.kill(before, signal.SIGKILL)
        assert run.says(f"{name:<10} | ended (SIGKILL), starting again in 0.2 s")
        assert until(lambda part=part, before=before: _pid_of(run, part) not in {0, before})  # type: ignore[misc]
    # Its own worker too: the server then ends by itself.
    for victim, ending in ((max, "exit 1"), (min, "SIGKILL")):
        os.kill(victim(_pids_of(run, "granian")), signal.SIGKILL)
        assert run.says(f"web        | ended ({ending})"), run.said[-20:]
        assert until(lambda: product.ready(run.port), timeout=30), run.said[-20:]
    processes = run.children()
    run.popen.terminate()
    assert run.popen.wait(timeout=30) == 0
    assert not _same(processes)


def test_killed_leaves_nothing(run: Run) -> None:
    assert run.says("ready: http://127.0.0.1:"), run.said[-20:]
    processes = run.children()
    assert len(processes) >= 5
    run.end()
    assert until(lambda: not _same(processes), timeout=40)


def test_taken_port_is_named(port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        run = Run(port, {})
        assert run.popen.wait(timeout=30) == 2
        assert run.says(f"port {port} is taken by another program: end that, or set PORT to a free one")


def test_two_that_begin_at_once_do_not_share_a_port(port: int) -> None:
    # The first has not come to listen on it yet.
    assert product.reserve(port)
    assert not product.taken(port)
    run = Run(port, {})
    assert run.popen.wait(timeout=60) == 2
    assert run.says(f"port {port} is taken by another program")
    assert product.reserve(port)


def test_bad_port_is_named() -> None:
    run = Run(0, {})
    assert run.popen.wait(timeout=30) == 1
    assert run.says("PORT must be a number from 1 to 65535, not '0'")


def test_migrations_that_start_together_take_turns(services: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate_locked"]
    env = {**os.environ, **services}
    runs = [
        subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    output = [popen.communicate(timeout=120)[0] for popen in runs]
    assert [popen.returncode for popen in runs] == [0, 0], output
    assert sum("No migrations to apply" in text for text in output) == 1
    with psycopg.connect(services["DATABASE_URL"]) as connection:
        locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    assert locks == (0,)


def test_missing_services_are_a_clear_word(tmp_path: Path, port: int) -> None:
    nowhere = {
        "DATABASE_URL": f"postgres://nobody:x@/none?host={tmp_path}",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    run = Run(port, nowhere)
    assert run.popen.wait(timeout=60) == 1
    assert run.says("the migrations failed, nothing was started")
