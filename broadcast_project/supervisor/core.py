"""Keeps processes alive: restarts what dies, stops all in time, leaves nothing behind when itself killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from broadcast_project.supervisor.process import Process, Undertaker
from broadcast_project.supervisor.pulse import GRACE, Pulse

_TICK = 0.05
_FIRST_BACKOFF = 0.2
_LONGEST_BACKOFF = 10.0
_STEADY_AFTER = 20.0
_LISTEN_EVERY = 0.5
# The whole product stops within 30 s: this, and what the embedded services need after it.
_STOP_TIMEOUT = 26.0

Log = Callable[[str, str], None]


class SupervisorError(Exception):
    """A supervised process did not do what was asked of it in time."""


@dataclass
class _Child:
    process: Process
    popen: subprocess.Popen[bytes] | None = None
    wanted: bool = True
    started_at: float = 0.0
    not_before: float = 0.0
    backoff: float = 0.0
    deaths: int = 0
    pulse: Pulse | None = None
    listen_at: float = 0.0
    kill_at: float | None = None

    @property
    def alive(self) -> bool:
        return self.popen is not None


class Supervisor:
    """Runs `processes` with `env` (default: this process's) until `stop()`.

    One thread starts and watches all of them, for the kernel ties a child to the thread that made it: started
    from a request's thread it would die with that. `log(name, line)` receives each line of output.
    """

    def __init__(self, processes: Iterable[Process], *, env: Mapping[str, str] | None = None, log: Log | None = None):
        self._children = {process.name: _Child(process) for process in processes}
        self._env = dict(os.environ if env is None else env)
        self._log = log or _discard
        self._state = threading.Condition()
        self._undertaker = Undertaker(_STOP_TIMEOUT)
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._broken: BaseException | None = None

    def start(self) -> None:
        """Begin. Returns once every process was started for the first time (which does not mean ready)."""
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()
        self._await(lambda: all(child.started_at for child in self._children.values()), 10.0, "start")

    def stop(self, timeout: float = _STOP_TIMEOUT) -> None:
        """Ask every process to end, wait at most `timeout` seconds, then kill what is left. Repeatable."""
        if self._thread is None:
            return
        with self._state:
            self._stopping = True
            for child in self._children.values():
                child.wanted = False
                self._signal(child, child.process.stop_signal)
            self._state.wait_for(self._all_gone, timeout)
            for child in self._children.values():
                self._signal(child, signal.SIGKILL)
            self._state.notify_all()
        self._thread.join()
        self._thread = None
        self._undertaker.dismiss()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def pids(self) -> dict[str, int]:
        """The process id of each process that lives now, by name."""
        with self._state:
            return {name: child.popen.pid for name, child in self._children.items() if child.popen}

    def deaths(self, name: str) -> int:
        """How often a process ended without having been asked to."""
        with self._state:
            return self._children[name].deaths

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to one process. If it ends, it is started again."""
        with self._state:
            self._signal(self._children[name], number)

    def hold(self, name: str, number: int, *, timeout: float = _STOP_TIMEOUT) -> None:
        """End one process by a signal and keep it down until `release`."""
        child = self._children[name]
        with self._state:
            child.wanted = False
            self._signal(child, number)
        self._await(lambda: not child.alive, timeout, f"end {name}")

    def release(self, name: str) -> None:
        """Start a held process again, at once."""
        child = self._children[name]
        with self._state:
            child.wanted, child.not_before, child.backoff = True, 0.0, 0.0
            self._state.notify_all()
        self._await(lambda: child.alive, 10.0, f"start {name}")

    def wait_ready(self, ready: Callable[[], bool], *, timeout: float = 60.0, interval: float = 0.1) -> None:
        """Poll `ready` until it is true. SupervisorError after `timeout` seconds, or when all was stopped."""
        deadline = time.monotonic() + timeout
        with self._state:
            while not self._unlocked(ready):
                self._check()
                if time.monotonic() > deadline:
                    raise SupervisorError(f"not ready after {timeout:.0f} s")
                if self._stopping:
                    raise SupervisorError("stopped before it was ready")
                self._state.wait(interval)

    def wait(self) -> None:
        """Block until `stop` is called elsewhere. SupervisorError when the supervisor itself broke."""
        with self._state:
            while not self._stopping:
                self._check()
                self._state.wait(1.0)

    def _await(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        with self._state:
            done = self._state.wait_for(lambda: condition() or self._broken is not None, timeout)
            self._check()
            if not done:
                raise SupervisorError(f"could not {what} within {timeout:.0f} s")

    def _unlocked(self, ready: Callable[[], bool]) -> bool:
        with _released(self._state):
            return ready()

    def _check(self) -> None:
        if self._broken is not None:
            raise SupervisorError(f"the supervisor broke: {self._broken}") from self._broken

    def _all_gone(self) -> bool:
        return not any(child.alive for child in self._children.values())

    # What follows runs in the supervisor's thread, with the state locked.

    def _run(self) -> None:
        try:
            with self._state:
                while not (self._stopping and self._all_gone()):
                    for child in self._children.values():
                        self._watch(child)
                    self._state.wait(_TICK)
        except BaseException as exc:
            # An edge: this thread's end takes every child along, and whoever waits must hear why.
            self._broken = exc
            raise
        finally:
            with self._state:
                self._state.notify_all()

    def _watch(self, child: _Child) -> None:
        now = time.monotonic()
        if child.popen is not None:
            if not _ended(child.popen.pid):
                self._listen(child, now)
                return
            self._bury(child, child.popen, now)
        if child.wanted and now >= child.not_before:
            self._launch(child, now)

    def _listen(self, child: _Child, now: float) -> None:
        """End what lives but has no pulse: by its own signal, and after a grace by the one that none can ignore."""
        if child.pulse is None or child.process.patience is None or not child.wanted or now < child.listen_at:
            return
        child.listen_at = now + _LISTEN_EVERY
        silence = child.pulse.silence(now)
        if child.kill_at is None:
            if silence > child.process.patience:
                self._log(child.process.name, f"silent for {silence:.0f} s, ending it")
                child.kill_at = now + GRACE
                self._signal(child, child.process.stop_signal)
        elif now >= child.kill_at:
            self._signal(child, signal.SIGKILL)

    def _launch(self, child: _Child, now: float) -> None:
        child.started_at, child.kill_at = now, None
        child.pulse = Pulse() if child.process.patience else None
        try:
            child.popen = child.process.spawn(self._env, child.pulse)
        except OSError as error:
            # Neither a full disk nor a full table of processes may take the others along.
            self._end(child, now, f"could not be started ({error.strerror})")
            return
        self._undertaker.watch(child.popen.pid)
        if child.popen.stdout is not None:
            arguments = (child.process.name, child.popen)
            threading.Thread(target=self._pump, args=arguments, name=f"log-{child.process.name}", daemon=True).start()
        self._state.notify_all()

    def _bury(self, child: _Child, popen: subprocess.Popen[bytes], now: float) -> None:
        _kill_group(popen.pid)
        self._undertaker.forget(popen.pid)
        self._end(child, now, f"ended ({_ending(popen.wait())})")

    def _end(self, child: _Child, now: float, how: str) -> None:
        child.popen = None
        if child.pulse is not None:
            child.pulse.close()
            child.pulse = None
        if child.wanted:
            child.deaths += 1
            steady = now - child.started_at > _STEADY_AFTER
            child.backoff = _FIRST_BACKOFF if steady or not child.backoff else min(child.backoff * 2, _LONGEST_BACKOFF)
            child.not_before = now + child.backoff
            self._log(child.process.name, f"{how}, starting again in {child.backoff:.1f} s")
        self._state.notify_all()

    def _signal(self, child: _Child, number: int) -> None:
        if child.popen is not None:
            os.kill(child.popen.pid, number)

    def _pump(self, name: str, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdout is not None
        with popen.stdout as lines:
            for line in lines:
                self._log(name, line.decode(errors="replace").rstrip("\n"))


def _ended(pid: int) -> bool:
    """Whether a child ended. It is not reaped yet, so that its id cannot mean another process."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(pid: int) -> None:
    """End what an unreaped process left of its group: a killed web server leaves workers on its port."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _ending(code: int) -> str:
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def _discard(name: str, line: str) -> None:
    """The log of a supervisor that was given none."""


@contextmanager
def _released(condition: threading.Condition) -> Iterator[None]:
    condition.release()
    try:
        yield
    finally:
        condition.acquire()
