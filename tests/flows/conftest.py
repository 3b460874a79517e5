"""A whole installation for each module of flows: real services, real processes, the simulator as witness."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import psycopg
import pytest
import requests

from broadcast_project.demo import play
from broadcast_project.demo.client import Client
from broadcast_project.demo.stage import Stage

TIMEOUT = 30


@dataclass
class Flow:
    """A seeded stage, and what a test asks of it."""

    stage: Stage
    seeded: dict[str, Any]
    log: list[str] = field(default_factory=list)

    @cached_property
    def api(self) -> Client:
        return Client(self.stage.url, key=self.seeded["key"])

    @cached_property
    def simulator(self) -> Client:
        return Client(self.stage.simulator_url)

    @property
    def body(self) -> dict[str, Any]:
        return play.body(self.seeded["group"], self.seeded["channels"])

    def post(self, body: dict[str, Any], **headers: str) -> requests.Response:
        given = {"Authorization": f"Bearer {self.seeded['key']}", **headers}
        return requests.post(f"{self.stage.url}/api/v1/broadcasts", json=body, headers=given, timeout=TIMEOUT)

    def move(self, broadcast_id: str, move: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.seeded['key']}"}
        return requests.post(
            f"{self.stage.url}/api/v1/broadcasts/{broadcast_id}/{move}", headers=headers, timeout=TIMEOUT
        )

    def state(self, broadcast_id: str) -> dict[str, Any]:
        return dict(self.api.get(f"/api/v1/broadcasts/{broadcast_id}"))

    def recipients(self, broadcast_id: str) -> list[dict[str, Any]]:
        found = self.api.get(f"/api/v1/broadcasts/{broadcast_id}/recipients", limit="200")
        assert found["next"] is None
        return list(found["results"])

    def book(self, **query: str) -> list[dict[str, Any]]:
        return list(self.simulator.get("/control/book", **query))

    def seen(self) -> set[int]:
        """What the phones have got so far, by number: tests of one stage run in any order."""
        return {entry["seq"] for entry in self.book()}

    def book_after(self, seen: set[int]) -> list[dict[str, Any]]:
        """What the phones have got since."""
        return [entry for entry in self.book() if entry["seq"] not in seen]

    def book_after_of(self, source: str, seen: set[int]) -> list[dict[str, Any]]:
        """The same of another source: typing, app."""
        return [entry for entry in self.book(source=source) if entry["seq"] > max(seen, default=0)]

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Look into the stage's database, whose tables the test's own Django does not use."""
        with psycopg.connect(self.stage.env["DATABASE_URL"], autocommit=True) as connection:
            return connection.execute(statement, parameters).fetchall()


@pytest.fixture(autouse=True)
def proven(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each flow the rows must prove each promise of the engine (``manage.py verify_broadcast``)."""
    yield
    job: Flow = request.getfixturevalue("job")
    assert job.stage.manage("verify_broadcast", "--all").endswith("no breach\n")


def least_gap(book: list[dict[str, Any]]) -> float:
    """The least time between two acts of one number, in seconds; infinite where none acted twice."""
    last: dict[str, float] = {}
    least = float("inf")
    for entry in sorted(book, key=lambda entry: entry["acted_at"]):
        if (before := last.get(entry["session"])) is not None:
            least = min(least, entry["acted_at"] - before)
        last[entry["session"]] = entry["acted_at"]
    return least


def flow(name: str, *, people: int, numbers: int, settings: dict[str, str] | None = None) -> Iterator[Flow]:
    """A started and seeded stage. A module-scoped fixture yields from it."""
    log: list[str] = []
    stage = Stage(
        name=name,
        log=lambda process, line: log.append(f"{process} | {line}"),
        settings=settings,
        simulator=("--seed", "1"),
    )
    with stage:
        seeded = json.loads(stage.manage("seed_demo", "--people", str(people), "--numbers", str(numbers)))
        yield Flow(stage, seeded, log)
