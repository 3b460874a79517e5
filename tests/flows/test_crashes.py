"""Killed in mid-broadcast, one after the other: nobody twice, nobody missing, unknown outcomes named."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from broadcast_project.demo import play
from tests.flows.conftest import Flow, flow, least_gap
from tests.waiting import until

PEOPLE, NUMBERS = 43, 4
SCALE = 0.3


@pytest.fixture(scope="module")
def job() -> Iterator[Flow]:
    yield from flow(
        "crash",
        people=PEOPLE,
        numbers=NUMBERS,
        settings={
            "PACE_SCALE": str(SCALE),
            "CLAIM_LEASE_SECONDS": "4",
            "EVIDENCE_SECONDS": "12",
            "BEAT_SECONDS": "5",
        },
    )


def test_no_crash_doubles_or_loses_anybody(job: Flow) -> None:
    """Among them B124, B125 (workers killed at any point) and B131 (the broker loses everything)."""
    broadcast_id = job.post(job.body).json()["broadcast_id"]
    crashes: list[Callable[[], None]] = [
        lambda: job.stage.product.kill("worker", signal.SIGKILL),
        lambda: job.stage.product.kill("dispatcher", signal.SIGKILL),
        lambda: job.stage.services.restart_postgres("immediate"),
        job.stage.services.flush_valkey,
        lambda: job.stage.product.kill("worker", signal.SIGKILL),
    ]
    for number, crash in enumerate(crashes, start=1):
        # In mid-broadcast: some have got theirs since the last crash, and many have not.
        reached = len(job.book())
        assert until(lambda reached=reached: len(job.book()) >= reached + 4, timeout=90), f"before crash {number}"  # type: ignore[misc]
        assert len(job.book()) < PEOPLE - 3
        crash()
    *_, state = play.watch(job.api, job.simulator, broadcast_id, time.sleep)

    assert state["status"] == "completed"
    book = job.book()
    people = Counter(entry["chat_id"] for entry in book)
    assert set(people.values()) == {1}
    by_status: dict[str, set[str]] = {}
    for person in job.recipients(broadcast_id):
        by_status.setdefault(person["status"], set()).add(f"{person['phone']}@c.us")
    unknown = by_status.get("in_doubt", set()) | by_status.get("failed", set())
    reached_ones = by_status.get("sent", set()) | by_status.get("delivered", set()) | by_status.get("read", set())
    # Whom a phone is known to have got one stands as reached or as unknown; nobody else stands as reached.
    assert reached_ones <= set(people) <= reached_ones | unknown
    assert len(reached_ones | unknown) == PEOPLE - 3
    assert least_gap(book) >= 5.0 * SCALE
    # The worker that was killed twice left at most one open message per number and kill.
    assert len(unknown) <= 2 * NUMBERS
    for person in job.recipients(broadcast_id):
        if person["status"] in {"in_doubt", "failed"}:
            assert person["error_code"] == "outcome_unknown"
