"""A whole installation for a while: what the demo shows and the flow tests try."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from broadcast_project.embedded import STATE, AlreadyRunningError, Embedded, EmbeddedError
from broadcast_project.supervisor import Process, Supervisor, SupervisorError, product

_AT_ONCE = 16
_COMMAND_TIMEOUT = 120.0
_READY_TIMEOUT = 120.0
SIMULATOR_KEY = "simulator"

Log = Callable[[str, str], None]


class StageError(Exception):
    """Something did not start; the message says what and what to do."""


class Stage:
    """Services, simulator and product between ``start`` and ``stop``, with data of their own, gone afterwards.

    ``settings`` is added to the product's environment, ``simulator`` to the simulator's command line. ``name``
    tells stages of one checkout apart; the first free number of it is taken. Without ``serves`` the product's
    processes are the caller's to start.
    """

    def __init__(
        self,
        *,
        name: str,
        log: Log,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        simulator: Sequence[str] = (),
        serves: bool = True,
    ) -> None:
        self._name, self._log = name, log
        self._extra, self._simulator_options = dict(settings or {}), tuple(simulator)
        self._serves = serves
        self._stack = ExitStack()
        self.port = port or free_port()
        self.simulator_port = free_port()
        self.env: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def simulator_url(self) -> str:
        return f"http://127.0.0.1:{self.simulator_port}"

    def start(self) -> None:
        """Start all; raises StageError with nothing left running."""
        try:
            self.services = self._take_services()
            self.env = self._environment()
            self.witness = self._supervise(Process("simulator", self._simulator_command()))
            self.manage("migrate_locked")
            if self._serves:
                self.product = self._supervise(*product.processes(self.port))
                self.product.wait_ready(lambda: product.ready(self.port), timeout=_READY_TIMEOUT)
        except (EmbeddedError, SupervisorError) as error:
            self.stop()
            raise StageError(str(error)) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all, in the reverse order. Repeatable."""
        self._stack.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def manage(self, *arguments: str, stdin: str = "") -> str:
        """Run a management command of the stage's product; what it printed."""
        done = subprocess.run(  # noqa: S603 - our own command line
            product.manage(*arguments),
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT,
            check=False,
        )
        if done.returncode != 0:
            raise StageError(f"manage.py {arguments[0]} failed:\n{done.stderr[-4000:]}")
        return done.stdout

    def _take_services(self) -> Embedded:
        for number in range(1, _AT_ONCE + 1):
            services = Embedded(STATE, name=f"{self._name}-{number}", durable=False)
            try:
                services.start()
            except AlreadyRunningError:
                continue
            self._stack.callback(services.stop)
            return services
        raise StageError(f"{_AT_ONCE} stages named {self._name} run already")

    def _environment(self) -> dict[str, str]:
        addresses = self.services.addresses
        own = {
            "DATABASE_URL": addresses.database_url,
            "REDIS_URL": addresses.redis_url,
            "SECRET_KEY": secrets.token_urlsafe(48),
            "FIELD_ENCRYPTION_KEYS": secrets.token_urlsafe(48),
            "PORT": str(self.port),
            "PUBLIC_BASE_URL": self.url,
            "WEBHOOK_BASE_URL": self.url,
            "WAHA_BASE_URL": self.simulator_url,
            "WAHA_API_KEY": SIMULATOR_KEY,
        }
        return dict(os.environ) | own | self._extra

    def _simulator_command(self) -> tuple[str, ...]:
        options = ("--port", str(self.simulator_port), "--api-key", SIMULATOR_KEY, *self._simulator_options)
        return (sys.executable, "-m", "simulator", *options)

    def _supervise(self, *processes: Process) -> Supervisor:
        rooted = [process if process.cwd else _in_root(process) for process in processes]
        supervisor = Supervisor(rooted, env=self.env, log=self._log)
        self._stack.callback(supervisor.stop)
        supervisor.start()
        return supervisor


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _in_root(process: Process) -> Process:
    root: Path = product.ROOT
    return Process(process.name, process.command, env=process.env, cwd=root)
