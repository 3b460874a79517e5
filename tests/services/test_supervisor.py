"""The supervisor over small programs of its own: restarts, stops, and what is left when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broadcast_project.supervisor import Process, Supervisor, SupervisorError, run_once
from tests.services.conftest import ROOT
from tests.waiting import until

_SLEEP = "import signal; print('up', flush=True); signal.pause()"
_STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
# As a web server does it: a worker that does not follow its parent.
_WITH_CHILD = f"""
import signal, subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {_SLEEP!r}]).pid, flush=True)
signal.pause()
"""
_SUPERVISE = """
import sys, threading
from broadcast_project.supervisor import Process, Supervisor
one = Process("one", (sys.executable, "-c", sys.argv[1]))
supervisor = Supervisor([one], log=lambda _, line: print(line, flush=True))
supervisor.start()
print("PID", supervisor.pids()["one"], flush=True)
threading.Event().wait()
"""


def _python(name: str, code: str) -> Process:
    return Process(name, (sys.executable, "-c", code))


def _alive(pid: int) -> bool:
    """Whether it runs; what only waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def has(self, line: str) -> bool:
        return any(line in text for _, text in self.lines)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def sleeper(log: Log) -> Iterator[Supervisor]:
    with Supervisor([_python("one", _SLEEP), _python("two", _SLEEP)], log=log) as supervisor:
        yield supervisor


def test_what_dies_is_started_again(sleeper: Supervisor, log: Log) -> None:
    before = sleeper.pids()
    sleeper.kill("one")
    assert until(lambda: sleeper.pids().get("one") not in {None, before["one"]})
    assert sleeper.pids()["two"] == before["two"]
    assert sleeper.deaths("one") == 1
    assert log.has("ended (SIGKILL), starting again in 0.2 s")


def test_back_off_grows_while_it_keeps_dying(log: Log) -> None:
    with Supervisor([_python("broken", "raise SystemExit(3)")], log=log):
        assert until(lambda: log.has("ended (exit 3), starting again in 0.8 s"))
    waits = [line.split()[-2] for _, line in log.lines]
    assert waits[:3] == ["0.2", "0.4", "0.8"]


def test_lines_carry_the_name(sleeper: Supervisor, log: Log) -> None:
    assert until(lambda: {("one", "up"), ("two", "up")} <= set(log.lines))


def test_held_stays_down_until_released(sleeper: Supervisor) -> None:
    sleeper.hold("one", signal.SIGTERM)
    assert sleeper.pids().keys() == {"two"}
    assert sleeper.deaths("one") == 0
    sleeper.release("one")
    assert sleeper.pids().keys() == {"one", "two"}


def test_stop_leaves_none_and_may_be_repeated(sleeper: Supervisor) -> None:
    pids = sleeper.pids().values()
    sleeper.stop()
    sleeper.stop()
    assert not any(_alive(pid) for pid in pids)


def test_the_stubborn_are_killed_at_the_deadline(log: Log) -> None:
    supervisor = Supervisor([_python("stubborn", _STUBBORN)], log=log)
    supervisor.start()
    assert until(lambda: log.has("up"))
    (pid,) = supervisor.pids().values()
    began = time.monotonic()
    supervisor.stop(timeout=0.3)
    assert time.monotonic() - began < 5
    assert not _alive(pid)


def test_a_killed_process_takes_its_children_along(log: Log) -> None:
    with Supervisor([_python("server", _WITH_CHILD)], log=log) as supervisor:
        assert until(lambda: log.has("up"))
        child = int(next(line for _, line in log.lines if line.isdecimal()))
        assert _alive(child)
        supervisor.kill("server")
        assert until(lambda: not _alive(child))


def test_program_that_is_not_there_is_told(log: Log) -> None:
    with Supervisor([Process("none", ("/no/such/program",))], log=log) as supervisor:
        assert until(lambda: supervisor.deaths("none") > 0)
    assert log.has("/no/such/program")


def test_what_cannot_be_started_takes_no_other_along(log: Log, tmp_path: Path) -> None:
    nowhere = replace(_python("nowhere", _SLEEP), output=tmp_path / "none" / "log")
    with Supervisor([nowhere, _python("one", _SLEEP)], log=log) as supervisor:
        assert until(lambda: supervisor.deaths("nowhere") > 1)
        assert supervisor.pids().keys() == {"one"}
        # As if there was room again.
        (tmp_path / "none").mkdir()
        assert until(lambda: supervisor.pids().keys() == {"nowhere", "one"})
    assert log.has("could not be started (No such file or directory), starting again in 0.2 s")


def test_waiting_for_readiness_ends(sleeper: Supervisor) -> None:
    sleeper.wait_ready(lambda: True)
    with pytest.raises(SupervisorError, match="not ready after 0 s"):
        sleeper.wait_ready(lambda: False, timeout=0.1)


def test_ignored_signals_are_not_passed_on() -> None:
    code = "import signal; raise SystemExit(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)"
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        status = run_once("probe", (sys.executable, "-c", code), log=Log(), timeout=30)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == 0


def test_run_once_gives_status_and_lines(log: Log) -> None:
    command = (sys.executable, "-c", "print('hello'); raise SystemExit(4)")
    assert run_once("probe", command, log=log, timeout=30) == 4
    assert log.lines == [("probe", "hello")]


def test_run_once_has_a_deadline(log: Log) -> None:
    assert run_once("probe", (sys.executable, "-c", _SLEEP), log=log, timeout=0.5) == -signal.SIGKILL


@pytest.mark.parametrize("code", [_SLEEP, _WITH_CHILD], ids=["alone", "with a child"])
def test_killed_supervisor_leaves_nothing(code: str) -> None:
    popen = subprocess.Popen([sys.executable, "-c", _SUPERVISE, code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert popen.stdout is not None
    pids: list[int] = []
    for line in popen.stdout:
        pids += [int(word) for word in line.split() if word.isdecimal()]
        if "up" in line:
            break
    group = [pid for pid in pids if _alive(pid)]
    assert group
    popen.kill()
    popen.communicate()
    # The kernel ends the child; the undertaker what that left behind.
    assert until(lambda: not any(_alive(pid) for pid in group))


def test_undertaker_kills_what_does_not_end() -> None:
    stubborn = subprocess.Popen(
        [sys.executable, "-c", _STUBBORN], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == "up\n"
    script = ROOT / "broadcast_project" / "supervisor" / "undertaker.py"
    subprocess.run([sys.executable, str(script), "0.2"], input=f"+{stubborn.pid}\n", text=True, check=True, timeout=30)
    stubborn.communicate()
    assert stubborn.returncode == -signal.SIGKILL


def test_undertaker_spares_what_was_forgotten() -> None:
    spared = subprocess.Popen([sys.executable, "-c", _SLEEP], start_new_session=True, stdout=subprocess.DEVNULL)
    script = ROOT / "broadcast_project" / "supervisor" / "undertaker.py"
    lines = f"+{spared.pid}\n-{spared.pid}\n"
    subprocess.run([sys.executable, str(script), "0.2"], input=lines, text=True, check=True, timeout=30)
    assert spared.poll() is None
    os.kill(spared.pid, signal.SIGKILL)
    spared.wait()
