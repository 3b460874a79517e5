"""``manage.py demo``: the main job on this machine, with nothing else installed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broadcast_project.demo import play
from broadcast_project.demo.client import Client
from broadcast_project.demo.stage import Stage, StageError
from broadcast_project.supervisor import product

_DEFAULT_PORT = 8000
_LOG_KEPT = 200
_WIDTH = 40


class Command(BaseCommand):
    help = "Runs a whole broadcast on embedded services and the simulator; serves until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="end by itself, with a summary")
        parser.add_argument("--people", type=int, default=45)
        parser.add_argument("--numbers", type=int, default=3)
        parser.add_argument("--time-zone", default="America/Sao_Paulo", help="the tenant's zone")
        parser.add_argument("--log", type=Path, help="write the log of all processes to this file")

    def handle(self, *_args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _interrupt)
        stage = Stage(name="demo", log=_Log(options["log"]), port=self._port())
        self.stdout.write("Starting PostgreSQL, Valkey, the simulator, web, worker, dispatcher and beat…")
        try:
            with stage:
                self._perform(stage, options)
        except StageError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")

    def _perform(self, stage: Stage, options: dict[str, Any]) -> None:
        arguments = ["--people", str(options["people"]), "--numbers", str(options["numbers"])]
        seeded = json.loads(stage.manage("seed_demo", *arguments, "--time-zone", options["time_zone"]))
        self._introduce(stage, seeded)
        api, simulator = Client(stage.url, key=seeded["key"]), Client(stage.simulator_url)
        since = time.time()
        request = play.body(seeded["group"], seeded["channels"])
        answer = play.post(api, request)
        self.stdout.write(
            f"\nPOST /api/v1/broadcasts → {answer['broadcast_id']}: {answer['total_recipients']} people, "
            f"{answer['excluded_recipients']} left out\n"
        )
        state: Any = None
        for state in play.watch(api, simulator, answer["broadcast_id"], time.sleep):
            self._show(state)
        self._summarise(api, simulator, state, since, seeded["reachable"])
        # Raises where a row breaks a promise.
        self.stdout.write("  the rows: " + stage.manage("verify_broadcast", state["id"]).splitlines()[-1])
        self.stdout.write(f"\nRepeat it:\n{play.curl(stage.url, seeded['key'], request)}\n")
        if not options["once"]:
            self.stdout.write("\nServing until Ctrl-C.")
            stage.product.wait()

    def _introduce(self, stage: Stage, seeded: dict[str, Any]) -> None:
        self.stdout.write(
            f"\n  Console    {stage.url}/admin/\n  Login      {seeded['admin']}\n  Password   {seeded['password']}"
            f"\n  API key    {seeded['key']}\n  Phones     {stage.simulator_url}/"
        )

    def _show(self, state: dict[str, Any]) -> None:
        counts = {name: number for name, number in state["counts"].items() if number}
        total = state["total_count"] or 1
        done = _WIDTH * state["sent_count"] // total
        line = f"{'█' * done}{'░' * (_WIDTH - done)} {state['status']:<9} " + " ".join(
            f"{name} {number}" for name, number in counts.items()
        )
        if sys.stdout.isatty():
            self.stdout.write(f"\r\x1b[2K{line}", ending="")
        else:
            self.stdout.write(line)
        self.stdout.flush()

    def _summarise(self, api: Client, simulator: Client, state: dict[str, Any], since: float, reachable: int) -> None:
        witness = play.ask_witness(simulator, since)
        excluded = api.get(f"/api/v1/broadcasts/{state['id']}/recipients", status="excluded")["results"]
        self.stdout.write(
            f"\n\nThe phones got {witness.messages} messages, {witness.people} people one each; "
            f"least gap of a number {witness.least_gap or 0:.2f} s (rule: {play.LEAST_GAP:.0f} s)."
        )
        for person in excluded:
            self.stdout.write(f"  left out: {person['phone']} ({person['exclusion']})")
        wrong = (
            witness.doubled or witness.people != reachable or state["counts"]["failed"] or state["counts"]["in_doubt"]
        )
        if wrong or (witness.least_gap is not None and witness.least_gap < play.LEAST_GAP):
            raise CommandError(f"the phones should have got {reachable} messages, one each: {witness}")

    @staticmethod
    def _port() -> int:
        """PORT if it is given, else 8000 if nobody has it, else any free one."""
        if given := os.environ.get("PORT"):
            if not given.isdecimal() or not 0 < int(given) < 65536:
                raise CommandError(f"PORT must be a number from 1 to 65535, not {given!r}")
            if not product.reserve(int(given)):
                raise CommandError(f"port {given} is taken by another program: end that, or set PORT to a free one")
            return int(given)
        return _DEFAULT_PORT if product.reserve(_DEFAULT_PORT) else 0


class _Log:
    """Keeps the last lines, and writes all of them to a file where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.tail: deque[str] = deque(maxlen=_LOG_KEPT)
        self._file = path.open("w", buffering=1) if path else None

    def __call__(self, name: str, line: str) -> None:
        text = f"{name:<10} | {line}"
        self.tail.append(text)
        if self._file:
            self._file.write(text + "\n")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
