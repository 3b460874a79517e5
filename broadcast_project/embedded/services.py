"""The owner of one PostgreSQL and one Valkey."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from broadcast_project.embedded import addresses as places
from broadcast_project.embedded import binaries, postgres, room, strays, valkey
from broadcast_project.embedded.addresses import Addresses, Credentials
from broadcast_project.embedded.errors import AlreadyRunningError, EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.supervisor import Supervisor, SupervisorError

_READY_TIMEOUT = 90.0
_STOP_TIMEOUT = 20.0
_LOCK_PATIENCE = 1.0
_HOPELESS = 4
_LOG_KEPT = 5_000_000

Mode = Literal["smart", "fast", "immediate"]
_STOP_SIGNALS: dict[Mode, int] = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class Embedded:
    """PostgreSQL and Valkey for trying and testing, alive from `start` to `stop` and restarted when they die.

    `state` (the checkout's `var`) holds lock, addresses and logs; `name` tells several pairs in it apart.
    With `durable=False` the data is new at each start, gone after `stop`, and not synced to disk. Both
    servers end when the owner is killed. `say` gets a line when one ended and is started again.
    """

    def __init__(
        self, state: Path, *, name: str = "main", durable: bool = True, say: Callable[[str], None] | None = None
    ) -> None:
        self._layout = Layout.of(state, name)
        self._durable = durable
        self._say = say
        self._lock: int | None = None
        self._supervisor: Supervisor | None = None

    def start(self) -> Addresses:
        """Take the services and return where they are, once both answer.

        AlreadyRunningError when another process holds them; EmbeddedError, with what to do, for the rest.
        """
        with room.explained(self._layout):
            self._take_lock()
        try:
            with room.explained(self._layout):
                self._begin()
        except BaseException:
            self.stop()
            raise
        return self.addresses

    def stop(self) -> None:
        """End both servers and let go of the lock. Repeatable."""
        if self._lock is None:
            return
        self._layout.ready.unlink(missing_ok=True)
        if self._supervisor is not None:
            self._supervisor.stop(_STOP_TIMEOUT)
            self._supervisor = None
        if not self._durable:
            self._wipe()
        os.close(self._lock)
        self._lock = None

    @property
    def addresses(self) -> Addresses:
        """Where the services are."""
        return places.addresses(self._layout)

    def __enter__(self) -> Addresses:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    # For tests of what the product does when its services fail.

    def restart_postgres(self, mode: Mode = "immediate") -> None:
        """End the server by one of its three ways to stop, start it again, and wait until it answers."""
        self._running.hold(postgres.NAME, _STOP_SIGNALS[mode])
        self.start_postgres()

    def kill_postgres(self) -> None:
        """Kill the server with -9 and keep it down until `start_postgres`."""
        self._running.hold(postgres.NAME, signal.SIGKILL)
        strays.await_end([self._layout.postgres])

    def start_postgres(self) -> None:
        """Start a server that was taken down, and wait until it answers."""
        self._running.release(postgres.NAME)
        self.wait_ready()

    def flush_valkey(self) -> None:
        """Lose everything the broker and the cache hold."""
        valkey.flush(self._credentials)

    def kill_valkey(self) -> None:
        """Kill the server with -9 and keep it down until `start_valkey`."""
        self._running.hold(valkey.NAME, signal.SIGKILL)

    def start_valkey(self) -> None:
        """Start a server that was taken down, and wait until it answers."""
        self._running.release(valkey.NAME)
        self.wait_ready()

    def restart_valkey(self) -> None:
        """Kill the server with -9, start it again, and wait until it answers."""
        self.kill_valkey()
        self.start_valkey()

    def pids(self) -> dict[str, int]:
        """The process ids of the two servers, by name."""
        return self._running.pids()

    def wait_ready(self) -> None:
        """Return once both answer. EmbeddedError, with the end of its log, when one does not stay up."""
        try:
            self._running.wait_ready(self._answer, timeout=_READY_TIMEOUT, interval=0.05)
        except SupervisorError as exc:
            raise EmbeddedError(f"the embedded services do not run: {exc}; see {self._layout.state}") from exc

    @property
    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise EmbeddedError("the embedded services were not started")
        return self._supervisor

    def _begin(self) -> None:
        layout = self._layout
        layout.ready.unlink(missing_ok=True)
        strays.await_end(layout.data_folders)
        if not self._durable:
            self._wipe()
        layout.make_folders()
        found = binaries.find()
        self._programs = binaries.copied(found) if layout.user else found
        self._credentials: Credentials = places.prepare(layout)
        if not layout.postgres.exists():
            postgres.create(layout, self._programs.postgres, self._credentials)
        postgres.check_version(layout, self._programs.postgres)
        postgres.forget_dead(layout)
        valkey.configure(layout, self._credentials, durable=self._durable)
        self._run()
        places.write_private(layout.ready, "")

    def _run(self) -> None:
        for service in (postgres.NAME, valkey.NAME):
            _shorten(self._layout.log(service))
        self._supervisor = Supervisor(
            [
                postgres.process(self._layout, self._programs.postgres, durable=self._durable),
                valkey.process(self._layout, self._programs.valkey, durable=self._durable),
            ],
            # Nothing of ours: the servers' user can read their environment.
            env={},
            log=self._tell,
        )
        self._supervisor.start()
        self.wait_ready()

    def _tell(self, name: str, line: str) -> None:
        if self._say is not None:
            self._say("; ".join(filter(None, (f"{name} {line}", room.shortage(self._layout)))))

    def _answer(self) -> bool:
        for service, advice in ((postgres.NAME, ""), (valkey.NAME, _valkey_advice(self._layout))):
            if self._running.deaths(service) >= _HOPELESS:
                raise EmbeddedError(f"{service} does not stay up:\n{_tail(self._layout.log(service))}{advice}")
        return valkey.answers(self._credentials) and postgres.answers(self._layout, self._programs.postgres)

    def _wipe(self) -> None:
        for folder in (self._layout.base, self._layout.sockets.parent):
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.parent.rmdir()

    def _take_lock(self) -> None:
        layout = self._layout
        layout.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + _LOCK_PATIENCE
        while not _try_lock(handle):
            # A process that only asks who holds the lock has it for an instant.
            if time.monotonic() > deadline:
                os.close(handle)
                raise AlreadyRunningError(
                    f"the embedded services of {layout.state} are held by process {places.owner(layout)}"
                )
            time.sleep(0.02)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._lock = handle


def _try_lock(handle: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _valkey_advice(layout: Layout) -> str:
    return f"\nNothing is lost without what it holds: if its file is broken, move {layout.valkey} away"


def _shorten(log: Path) -> None:
    """Begin a log anew that has grown long: nothing else ever shortens it."""
    if log.exists() and log.stat().st_size > _LOG_KEPT:
        log.unlink()


def _tail(log: Path, lines: int = 12) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
