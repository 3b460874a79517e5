"""One run: an installation of its own, its herd, the blows, the calm after them, and the verdict."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from string import ascii_lowercase
from tempfile import TemporaryDirectory
from typing import Self

import psycopg
import requests

from broadcast_project.demo.client import Client
from broadcast_project.demo.stage import Stage, StageError
from broadcast_project.supervisor import product
from chaos import journal, options, verdict
from chaos.herd import Herd
from chaos.options import Options
from chaos.posting import Caller, Waverer
from chaos.verdict import Trouble, Verdict
from chaos.weather import Weather

# Longer than any lease, as 60 s are at the product's own settings.
STOP_SECONDS = 1.5 * (options.DEADLINE_SECONDS + options.SETTLE_SECONDS + 5)
_WEATHER_SECONDS = 2.0
_SKEW_SECONDS = 5.0
_CALM_SECONDS = 240.0
_UNFINISHED = """
SELECT (SELECT count(*) FROM broadcasts WHERE status NOT IN ('completed', 'canceled', 'failed'))
     + (SELECT count(*) FROM messages WHERE status = 'sending')
     + (SELECT count(*) FROM messages WHERE status = 'in_doubt'
          AND sending_at > now() - make_interval(secs => %s))
     + (SELECT count(*) FROM webhook_events_log WHERE state IN ('received', 'error') AND attempts < 5)
     + (SELECT count(*) FROM lanes WHERE busy_message IS NOT NULL)
"""
# One blow in so many falls on a server instead of a process.
_SERVERS = 40


class Run:
    """Enter it, then ``strike``, ``calm`` and ``judge``."""

    def __init__(self, given: Options) -> None:
        self.options = given
        self.kills = self.postgres = self.broker = self.broadcasts = 0
        self.seconds = 0.0
        self._restarts: list[float] = []
        self._stack = ExitStack()
        self._choice = random.Random(f"{given.seed}-blows")  # noqa: S311 - repeatable, not secret

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def strike(self) -> None:
        """Blow after blow, as the seed has it, until there were enough."""
        started = time.monotonic()
        weather_at, stops_left = 0.0, self.options.stops
        next_at = started
        while self.kills < self.options.kills:
            next_at += self._choice.expovariate(self.options.rate)
            time.sleep(max(next_at - time.monotonic(), 0))
            if time.monotonic() >= weather_at:
                self.weather.change()
                weather_at = time.monotonic() + _WEATHER_SECONDS
            if stops_left and self.kills >= self.options.kills * (1 - stops_left / (self.options.stops + 1)):
                stops_left -= 1
                self.herd.freeze(self._choice.choice(sorted(self.herd.beasts)), STOP_SECONDS)
            self._blow()
            self.kills = len([death for death in self.herd.deaths if not death.cause.startswith("exit")])
            self.kills += self.postgres + self.broker
        self.seconds = time.monotonic() - started

    def calm(self) -> None:
        """No more blows: whatever is under way comes to its end, and what was not heard of to its doubt."""
        self.herd.at_points = False
        for caller in self._callers:
            caller.end()
        self._simulator_faults_lifted()
        # Whoever still carries a fault point is replaced by one that does not.
        for name in self.herd.living(standing=True):
            if self.herd.beasts[name].point:
                self.herd.kill(name)
        give_up = time.monotonic() + _CALM_SECONDS
        settled = 3 * options.EVIDENCE_SECONDS + 3 * options.BEAT_SECONDS
        while time.monotonic() < give_up and (self._callers_busy() or self._unfinished(settled)):
            time.sleep(1.0)

    def judge(self) -> Verdict:
        """Book, rows and journal against each other, and the proof from the rows."""
        rounds = {broadcast: round_ for caller in self._callers for round_, broadcast in caller.posted.items()}
        self.broadcasts = len(rounds)
        found = verdict.compare(
            self._simulator.get("/control/book"),
            verdict.fates(self.stage.env["DATABASE_URL"], rounds),
            journal.read(self.journal),
            Trouble(self.herd.deaths, self.herd.stops, self._restarts, self.weather.spoilt),
        )
        try:
            self.stage.manage("verify_broadcast", "--all")
        except StageError as error:
            found.breaches = [line for line in str(error).splitlines() if "BREACH" in line] or [str(error)]
        if left := self._unfinished(0):
            found.breaches.append(f"{left} rows were still unfinished after the calm")
        return found

    def _begin(self) -> None:
        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="chaos-")))
        self.journal = folder / "journal"
        self._lines: deque[str] = deque(maxlen=1000)
        self.stage = Stage(
            name="chaos",
            log=lambda process, line: self._lines.append(f"{process} | {line}"),
            settings=options.SETTINGS,
            simulator=("--seed", str(self.options.seed), "--engine", self.options.engine, "--time-scale", "0.3"),
            serves=False,
        )
        self._stack.enter_context(self.stage)
        self._simulator = Client(self.stage.simulator_url)
        self.weather = Weather(self._simulator, self._random("weather"))
        log = self.options.log_file or folder / "log"
        self.herd = Herd(self.stage.env, log, self._random("points"))
        self._stack.callback(self.herd.stop)
        self.herd.start()
        self._populate()
        arguments = ("--people", str(self.options.people), "--numbers", str(self.options.numbers))
        seeded = json.loads(self.stage.manage("seed_demo", *arguments))
        self._callers = [
            Caller(name, self.stage.url, seeded, self._random(name)) for name in ascii_lowercase[: self.options.callers]
        ]
        self._callers.append(Waverer("z", self.stage.url, seeded, self._random("z")))
        for caller in self._callers:
            caller.start()

    def _populate(self) -> None:
        herd, given = self.herd, self.options
        # The first web serves while numbers are paired.
        herd.add("web1", "web", port=self.stage.port)
        give_up = time.monotonic() + 30
        while not product.ready(self.stage.port) and time.monotonic() < give_up:
            if "worker1" not in herd.beasts:
                self._add_others(herd, given)
            time.sleep(0.2)

    def _add_others(self, herd: Herd, given: Options) -> None:
        for number in range(1, given.workers + 1):
            ahead = _SKEW_SECONDS if number == given.workers and number > 1 else 0.0
            herd.add(f"worker{number}", "worker", journal=str(self.journal), ahead=ahead)
        for number in range(1, given.dispatchers + 1):
            herd.add(f"dispatcher{number}", "dispatcher")
        for number in range(1, given.beats + 1):
            herd.add(f"beat{number}", "beat")

    def _blow(self) -> None:
        where = self._choice.randrange(_SERVERS)
        if where == 0:
            self._restarts.append(time.time())
            self.stage.services.restart_postgres("immediate")
            self._restarts.append(time.time())
            self.postgres += 1
        elif where == 1:
            self.stage.services.restart_valkey()
            self.broker += 1
        else:
            names = self.herd.living()
            if names:
                self.herd.kill(self._choice.choice(names))

    def _simulator_faults_lifted(self) -> None:
        requests.delete(f"{self.stage.simulator_url}/control/faults", timeout=10).raise_for_status()

    def _callers_busy(self) -> bool:
        return any(caller.is_alive() for caller in self._callers)

    def _unfinished(self, settled: float) -> int:
        with psycopg.connect(self.stage.env["DATABASE_URL"]) as connection:
            found = connection.execute(_UNFINISHED, [settled]).fetchone()
        assert found is not None
        return int(found[0])

    def _random(self, name: str) -> random.Random:
        return random.Random(f"{self.options.seed}-{name}")  # noqa: S311 - repeatable, not secret
