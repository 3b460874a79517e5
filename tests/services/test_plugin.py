"""A test run that is killed leaves no server behind, and two runs do not meet."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from broadcast_project.embedded import STATE
from tests.services.conftest import ROOT, gone, servers

_PROBE = """
import os, sys
def test_wait():
    print("URL", os.environ["DATABASE_URL"], flush=True)
    sys.stdin.read()
"""


@contextmanager
def _run(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another pytest, inside its only test, and the URL of its database."""
    (folder / "test_probe.py").write_text(_PROBE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("DATABASE_", "REDIS_", "PYTEST_"))
    }
    options = ["-s", "-q", "-c", "pytest.ini", "-p", "tests.plugin", "-p", "no:django", "test_probe.py"]
    popen = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert popen.stdout is not None
    try:
        url = next(match[1] for line in popen.stdout if (match := re.search(r"URL (\S+)", line)))
        yield popen, url
    finally:
        popen.kill()
        popen.communicate()


def _name(url: str) -> str:
    found = re.search(r"tests-\d+", url)
    assert found is not None
    return found[0]


def test_killed_run_leaves_no_server(tmp_path: Path) -> None:
    with _run(tmp_path) as (popen, url):
        name = _name(url)
        assert servers(STATE, name)
        popen.kill()
        popen.wait()
        assert gone(STATE, name)


def test_run_that_ends_leaves_no_server(tmp_path: Path) -> None:
    with _run(tmp_path) as (popen, url):
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT current_user").fetchone() == ("broadcast",)
        popen.communicate(timeout=30)
        assert popen.returncode == 0
        assert not servers(STATE, _name(url))


def test_runs_at_once_have_servers_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with _run(tmp_path / "one") as (_, first), _run(tmp_path / "two") as (_, second):
        assert _name(first) != _name(second)
