"""The pulse of a process, as its supervisor and the check of its container read it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broadcast_project.supervisor import Process, Supervisor, pulse
from tests.services.conftest import ROOT
from tests.waiting import until

# One that works, and stops working on SIGUSR1 though it lives and hears signals.
_WORKS = """
import signal, time
from broadcast_project.supervisor import pulse
silent = []
signal.signal(signal.SIGUSR1, lambda *_: silent.append(True))
while True:
    if not silent:
        pulse.renew()
    time.sleep(0.05)
"""
_SLEEPS = "import signal; signal.pause()"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(pulse.VARIABLE, str(tmp_path / "pulse"))
    return tmp_path / "pulse"


@pytest.fixture
def worker(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leaves its pulse in the file, as one in a container does."""
    popen = subprocess.Popen([sys.executable, "-c", _WORKS], cwd=ROOT)
    assert until(lambda: file.exists() and file.read_text() == str(popen.pid))
    yield popen
    popen.kill()
    popen.wait()


def check(patience: float) -> tuple[int, str]:
    """What the container's check says, run as Docker runs it."""
    command = [sys.executable, "-m", "broadcast_project.supervisor.pulse", str(patience)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout


def test_check_of_one_that_works_is_well(worker: subprocess.Popen[bytes]) -> None:
    assert check(5) == (0, "")
    assert worker.poll() is None


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGSTOP], ids=["hangs", "stands still"])
def test_check_ends_what_is_silent(worker: subprocess.Popen[bytes], file: Path, number: int) -> None:
    worker.send_signal(number)
    assert until(lambda: time.monotonic() - file.stat().st_mtime_ns / 1e9 > 1)
    status, said = check(1)
    assert status == 1
    assert f"ending process {worker.pid}" in said
    assert worker.wait(timeout=10) == (-signal.SIGTERM if number == signal.SIGUSR1 else -signal.SIGKILL)


def test_check_spares_one_that_has_only_begun(file: Path) -> None:
    # The file is from the container's life before, and its process number means another one now.
    young = subprocess.Popen([sys.executable, "-c", _SLEEPS])
    try:
        file.write_text(str(young.pid))
        os.utime(file, ns=(0, 0))
        assert check(1) == (1, "no pulse yet\n")
        assert young.poll() is None
    finally:
        young.kill()
        young.wait()


def test_check_without_a_pulse_says_so(file: Path) -> None:
    assert check(1) == (1, "no pulse yet\n")
    file.write_text("")
    assert check(1) == (1, "no pulse yet\n")


def test_renewing_needs_no_observer_and_no_writable_place(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pulse.VARIABLE, "/proc/no/such/place")
    pulse.renew()
    monkeypatch.delenv(pulse.VARIABLE)
    pulse.renew()
    assert not file.exists()


def test_supervisor_replaces_what_hangs_and_leaves_the_rest() -> None:
    lines: list[str] = []
    command = (sys.executable, "-c", _WORKS)
    works, hangs = Process("works", command, cwd=ROOT, patience=2), Process("hangs", command, cwd=ROOT, patience=2)
    with Supervisor([works, hangs], log=lambda name, line: lines.append(f"{name} | {line}")) as supervisor:
        before = supervisor.pids()
        # Ready to hear the signal.
        assert until(lambda: _catches(before["hangs"], signal.SIGUSR1))
        supervisor.kill("hangs", signal.SIGUSR1)
        assert until(lambda: supervisor.pids().get("hangs") not in {None, before["hangs"]})
        assert supervisor.pids()["works"] == before["works"]
    assert lines[:2] == [
        "hangs | silent for 2 s, ending it",
        "hangs | ended (SIGTERM), starting again in 0.2 s",
    ]


def test_an_observer_that_stood_still_accuses_nobody() -> None:
    observed = pulse.Pulse()
    try:
        began = time.monotonic()
        assert observed.silence(began + 1) < 2
        assert observed.silence(began + 1000) < 2
        assert observed.silence(began + 1003) > 3
        os.utime(f"/proc/self/fd/{observed.file}", ns=(7, 7))
        assert observed.silence(began + 1004) == 0
    finally:
        observed.close()


def _catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
