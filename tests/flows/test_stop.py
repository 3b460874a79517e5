"""Stopped while messages leave: each is settled, none is in doubt, and a later start ends the job."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from broadcast_project.demo import play
from broadcast_project.supervisor import Supervisor, product
from tests.flows.conftest import Flow, flow
from tests.waiting import until

PEOPLE, NUMBERS = 16, 4
# The seed leaves out an opted-out person, an invalid number and a double.
REACHED = PEOPLE - 3
# The gateway answers so many seconds after the message has left: a stop falls into them.
ANSWERS_AFTER = 4.0


@pytest.fixture(scope="module")
def job() -> Iterator[Flow]:
    yield from flow("stop", people=PEOPLE, numbers=NUMBERS, settings={"PACE_SCALE": "0.2", "BEAT_SECONDS": "5"})


# A message is out whose call has not been settled; its acks may be there already.
_IN_FLIGHT = """
SELECT count(*) FROM lanes JOIN messages ON messages.id = lanes.busy_message
WHERE messages.status NOT IN ('queued', 'claimed')
"""


def in_flight(job: Flow) -> int:
    return int(job.sql(_IN_FLIGHT)[0][0])


def test_a_stop_settles_what_is_in_flight(job: Flow) -> None:
    job.simulator.post(
        "/control/faults", {"kind": "delay_after", "op": "sendText", "seconds": ANSWERS_AFTER, "count": NUMBERS}
    )
    broadcast_id = job.post(job.body).json()["broadcast_id"]
    # All numbers have a message out that nobody has answered yet.
    assert until(lambda: in_flight(job) == NUMBERS and len(job.book()) >= NUMBERS, timeout=60)
    began = time.monotonic()
    job.stage.product.stop()
    # With what the embedded services need after it the whole product stops within 30 s.
    assert time.monotonic() - began < 26
    assert not any("SIGKILL" in line for line in job.log)
    assert in_flight(job) == 0
    by_status = dict(job.sql("SELECT status, count(*) FROM messages GROUP BY status"))
    assert by_status.keys() <= {"sent", "delivered", "read", "queued", "claimed"}, by_status
    left = sum(by_status.get(status, 0) for status in ("sent", "delivered", "read"))
    assert left == len(job.book())

    # The next start goes on where this one ended.
    with Supervisor(product.processes(job.stage.port), env=job.stage.env) as again:
        again.wait_ready(lambda: product.ready(job.stage.port), timeout=120)
        *_, state = play.watch(job.api, job.simulator, broadcast_id, time.sleep)
    assert state["status"] == "completed"
    assert (state["counts"]["in_doubt"], state["counts"]["failed"]) == (0, 0)
    people = Counter(entry["chat_id"] for entry in job.book())
    assert len(people) == REACHED
    assert set(people.values()) == {1}
