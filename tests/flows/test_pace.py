"""The pace at the act of the gateway, and moves in mid-run: four workers, restarts, typing, a gateway in no hurry."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import requests

from broadcast_project.demo import play
from broadcast_project.supervisor import Supervisor, product
from messaging import rules
from tests.flows.conftest import TIMEOUT, Flow, flow
from tests.waiting import until

PEOPLE, NUMBERS, WORKERS = 23, 4, 4
REACHED = PEOPLE - 3
SINGLE, BROADCAST = rules.DEFAULTS.any_pace, rules.DEFAULTS.broadcast_pace
TYPING = 1
# A tick of the dispatcher, the ring, the statements; on a machine that others use too.
LATENCY = 2.0
LEFT = {"sent", "delivered", "read"}
# A message to everybody's surprise, from a person, on the number of the first session.
_HUMAN = """
import json
from channels_waha.models import ChannelSession
from messaging import services
from messaging.models import Message
from permissions import isolation
from permissions.isolation import Sweep
from django.utils import timezone
with isolation.across_tenants(Sweep.COMMAND, "test"):
    session = ChannelSession.unscoped.select_related("channel").get(session_name="{session}")
    services.queue_single(channel=session.channel, address="5511977776666", text="humano", now=timezone.now(),
                          priority=Message.Priority.HUMAN)
print(timezone.now().timestamp())
"""


@pytest.fixture(scope="module")
def job() -> Iterator[Flow]:
    settings = {
        "WAHA_TYPING_SECONDS": str(TYPING),
        "SEND_DEADLINE_SECONDS": "12",
        "EVIDENCE_SECONDS": "15",
        "BEAT_SECONDS": "5",
    }
    yield from flow("pace", people=PEOPLE, numbers=NUMBERS, settings=settings)


@pytest.fixture(scope="module")
def others(job: Flow) -> Iterator[Supervisor]:
    """Three more workers, named worker-2 to worker-4."""
    (worker,) = [process for process in product.processes(job.stage.port) if process.name == "worker"]
    more = [replace(worker, name=f"worker-{number}", patience=None) for number in range(2, WORKERS + 1)]
    with Supervisor(more, env=job.stage.env, log=lambda process, line: job.log.append(f"{process} | {line}")) as added:
        yield added


@pytest.fixture(autouse=True)
def calm(job: Flow, others: Supervisor) -> Iterator[None]:
    yield
    requests.delete(f"{job.stage.simulator_url}/control/faults", timeout=TIMEOUT)


def human(job: Flow, session: str) -> float:
    """Have a person write now; when it was queued."""
    return float(json.loads(job.stage.manage("shell", "-v", "0", "-c", _HUMAN.format(session=session))))


def gaps(book: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Seconds between the acts of each session."""
    acts: dict[str, list[float]] = defaultdict(list)
    for entry in book:
        acts[entry["session"]].append(entry["acted_at"])
    return {session: [later - before for before, later in pairwise(sorted(times))] for session, times in acts.items()}


def finished(job: Flow, broadcast_id: str) -> dict[str, Any]:
    *_, state = play.watch(job.api, job.simulator, broadcast_id, time.sleep)
    return dict(state)


def test_whenever_the_gateway_acts_its_acts_keep_the_pace(job: Flow, others: Supervisor) -> None:
    before = job.seen()
    # Three coins: 0 to 9 s before it acts, in seven steps.
    for seconds in (1.5, 3.0, 4.5):
        fault = {"kind": "delay_before", "op": "sendText", "seconds": seconds, "probability": 0.5}
        job.simulator.post("/control/faults", fault)
    broadcast_id = job.post(job.body).json()["broadcast_id"]
    assert until(lambda: len(job.book_after(before)) >= NUMBERS, timeout=60)
    session = job.seeded["sessions"][0]
    asked = human(job, session)
    others.kill("worker-2", signal.SIGTERM)
    assert until(lambda: len(job.book_after(before)) >= 2 * NUMBERS, timeout=60)
    others.kill("worker-3", signal.SIGKILL)
    state = finished(job, broadcast_id)

    assert state["status"] == "completed"
    book = sorted(job.book_after(before), key=lambda entry: entry["acted_at"])
    assert set(Counter((entry["chat_id"], entry["text"]) for entry in book).values()) == {1}
    (written,) = [entry for entry in book if entry["text"] == "humano"]
    ours = [entry for entry in book if entry["text"] != "humano"]
    assert min(min(each) for each in gaps(book).values()) >= SINGLE.gap
    assert min(min(each) for each in gaps(ours).values()) >= BROADCAST.gap
    # It overtakes all but the one that was on its way.
    beside = [entry for entry in ours if entry["session"] == session]
    overtaking = [entry for entry in beside if asked < entry["requested_at"] < written["requested_at"]]
    assert len(overtaking) <= 1
    earlier = [entry for entry in beside if entry["requested_at"] < written["requested_at"]]
    lane_free = max([asked, *(entry["answered_at"] or entry["acted_at"] for entry in earlier)])
    assert written["requested_at"] - lane_free <= SINGLE.gap + SINGLE.jitter + TYPING + LATENCY
    typed = job.book_after_of("typing", before)
    assert {entry["chat_id"] for entry in typed} == {entry["chat_id"] for entry in book}
    assert state["counts"]["in_doubt"] <= NUMBERS


def test_pause_restart_opt_out_and_resume_in_mid_run(job: Flow) -> None:
    before = job.seen()
    broadcast_id = job.post(job.body).json()["broadcast_id"]
    assert until(lambda: len(job.book_after(before)) >= NUMBERS, timeout=60)
    assert job.move(broadcast_id, "pause").status_code == 200
    paused_with = len(job.book_after(before))
    for name in ("worker", "dispatcher"):
        job.stage.product.kill(name, signal.SIGKILL)
    waiting = [person for person in job.recipients(broadcast_id) if person["status"] in {"pending", "queued"}]
    opted_out = waiting[0]["phone"]
    job.sql("UPDATE contacts SET is_blocked = true WHERE identity = %s RETURNING 1", opted_out)
    # Three gaps long only what was past its gate leaves.
    quiet = 3 * (BROADCAST.gap + BROADCAST.jitter)
    assert not until(lambda: len(job.book_after(before)) > paused_with + NUMBERS, timeout=quiet)
    assert job.move(broadcast_id, "resume").status_code == 200
    state = finished(job, broadcast_id)

    assert state["status"] == "completed"
    book = job.book_after(before)
    people = Counter(entry["chat_id"] for entry in book)
    assert set(people.values()) == {1}
    assert len(people) == REACHED - 1
    assert f"{opted_out}@c.us" not in people
    assert f"{opted_out}@c.us" not in {entry["chat_id"] for entry in job.book_after_of("typing", before)}
    assert state["counts"]["skipped"] == 1
    assert min(min(each) for each in gaps(book).values()) >= BROADCAST.gap
    job.sql("UPDATE contacts SET is_blocked = false WHERE identity = %s RETURNING 1", opted_out)


def test_after_a_cancel_only_what_was_past_its_gate_leaves(job: Flow) -> None:
    before = job.seen()
    job.simulator.post("/control/faults", {"kind": "delay_before", "op": "sendText", "seconds": 2.0})
    broadcast_id = job.post(job.body).json()["broadcast_id"]
    assert until(lambda: len(job.book_after(before)) >= NUMBERS, timeout=60)
    assert job.move(broadcast_id, "cancel").json()["status"] == "canceled"
    canceled_with = len(job.book_after(before))
    assert not until(
        lambda: len(job.book_after(before)) > canceled_with + NUMBERS, timeout=2 * (BROADCAST.gap + BROADCAST.jitter)
    )
    statuses = Counter(person["status"] for person in job.recipients(broadcast_id))
    assert sum(statuses[word] for word in LEFT) == len(job.book_after(before))
    assert statuses.keys() <= LEFT | {"canceled", "excluded"}
