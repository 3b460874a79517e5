"""Two dispatchers, two beats, four workers on the same lanes, one with a clock that is off: as if there were one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.options import Options
from chaos.run import Run


@pytest.fixture(scope="module")
def job() -> Iterator[Run]:
    with Run(Options(kills=0, stops=0, numbers=4, people=19)) as run:
        yield run


def test_nobody_is_in_doubt_where_nothing_is_killed(job: Run) -> None:
    job.calm()
    found = job.judge()
    assert found.is_clean, found
    # Two callers had their broadcast, a third called its off; sixteen of nineteen lines are people who can be reached.
    assert sum(number for status, number in found.statuses.items() if status != "canceled") == found.messages
    assert found.messages >= 2 * 16
    assert set(found.statuses) <= {"sent", "delivered", "read", "canceled"}
    callers = {json.loads(line)[2] for line in Path(job.journal).read_text().splitlines()}
    assert len(callers) > 1
