from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from broadcast_project.embedded.layout import Layout
from broadcast_project.embedded.strays import processes_in
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """An empty state folder. What its services keep elsewhere goes with it."""
    yield tmp_path
    for folder in {Layout.of(tmp_path, "main").base, Layout.of(tmp_path, "main").sockets.parent}:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent != Layout.of(tmp_path, "main").state:
            shutil.rmtree(folder.parent, ignore_errors=True)


@dataclass
class Owner:
    """Another process that holds embedded services."""

    popen: subprocess.Popen[str]
    database_url: str
    redis_url: str
    uid: int

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> int:
        self.popen.communicate(timeout=30)
        return self.popen.returncode


Own = Callable[..., Owner]


@pytest.fixture
def own() -> Iterator[Own]:
    """Start an owner of a state folder, with this Python or another command. None outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(
        state: Path,
        *,
        keep: bool = False,
        command: tuple[str, ...] = (sys.executable,),
        env: Mapping[str, str] | None = None,
    ) -> Owner:
        arguments = [*command, "-m", "tests.services.owner", str(state), *(["keep"] if keep else [])]
        popen = subprocess.Popen(arguments, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(popen)
        assert popen.stdout is not None
        return Owner(popen, **json.loads(popen.stdout.readline()))

    yield start
    for popen in started:
        popen.kill()
        popen.communicate()


def servers(state: Path, name: str = "main") -> set[int]:
    """The processes of the services of a state folder."""
    return processes_in(Layout.of(state, name).data_folders)


def gone(state: Path, name: str = "main") -> bool:
    """Whether none of them is left, now or within some seconds."""
    return until(lambda: not servers(state, name))
