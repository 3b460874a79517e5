"""The benchmark: fair turns, honest ratios, and no figure for what was wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from bench import figures, machine, options, queued
from bench.figures import Figure, WrongResult
from bench.parts.engine import _FIRST, Contender
from bench.parts.freeze import _wanted
from bench.parts.lanes import Step, _check

ROOT = Path(__file__).resolve().parents[2]


def figure(**fields: Any) -> Figure:
    given: dict[str, Any] = {"what": "freeze", "unit": "row", "ours": 50.0, "against": "COPY", "theirs": 100.0}
    return Figure(**(given | fields))


@pytest.mark.parametrize(("floor", "missed"), [(None, False), (0.5, False), (0.51, True)])
def test_a_ratio_below_the_promise_is_missed(floor: float | None, missed: bool) -> None:
    assert figure(floor=floor).is_missed is missed


def test_the_table_says_what_what_against_and_whether_it_held() -> None:
    text = figures.table([figure(floor=0.6, cpu={"web": 1.5, "postgres": 0.25}, checked="all there")])

    assert "0.50   0.60 MISSED" in text
    assert "freeze: ms of processor a row: web 1.50, postgres 0.25; together 1.75" in text
    assert "freeze: all there" in text


@pytest.mark.parametrize(("ceiling", "missed"), [(None, False), (0.5, False), (0.49, True)])
def test_a_ratio_above_the_promise_is_missed(ceiling: float | None, missed: bool) -> None:
    assert figure(ceiling=ceiling).is_missed is missed


def test_a_size_is_no_rate() -> None:
    text = figures.table([figure(unit="MiB", ceiling=0.25, is_rate=False)])

    assert "50.0 MiB " in text
    assert "≤ 0.25 MISSED" in text


def test_what_a_child_holds_is_in_memory() -> None:
    assert machine.resident_mib(os.getpid())["bench"] > 20


def test_shares_are_as_even_as_whole_numbers_are() -> None:
    assert queued.shares(7, 3) == [3, 2, 2]


def test_how_late_paced_messages_were_is_told_for_all_and_for_each_organization() -> None:
    step = Step(100, 4)
    step.late[UUID(int=1)] = [10.0, 20.0]
    step.late[UUID(int=2)] = [30.0, 50.0]

    assert step.tell().startswith("4 messages late by p50 25 ms")
    assert step.tell().endswith("of 2 organizations the latest by 40 ms on average, the least late by 15 ms")


def test_a_paced_message_that_the_book_has_not_is_found() -> None:
    book = _Book([{"chat_id": "1@c.us"}])
    step = Step(100, 2, sent=["1@c.us", "2@c.us"])

    with pytest.raises(WrongResult, match="differ by 1"):
        _check(book, [step])  # type: ignore[arg-type]
    step.sent.pop()
    assert "1 people" in _check(book, [step])  # type: ignore[arg-type]


def test_the_median_round_counts() -> None:
    assert figures.median_rates(100, [1.0, 50.0, 2.0]) == 50.0


def test_each_contender_is_first_as_often_as_the_others() -> None:
    order: list[str] = []

    def run(name: str) -> float:
        order.append(name)
        return 1.0

    found = figures.by_turns(3, {name: lambda name=name: run(name) for name in "abc"})  # type: ignore[misc]

    assert "".join(order) == "abcbcacab"
    assert found == {name: [1.0] * 3 for name in "abc"}


def test_what_a_child_used_is_in_the_account() -> None:
    before = machine.processor_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(4_000_000))"], check=True)

    spent = machine.spent(before, machine.processor_seconds(os.getpid()), 1)

    assert spent["bench"] > 10


class _Book:
    """A simulator that is asked for nothing but its book."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = entries

    def get(self, _path: str) -> list[dict[str, Any]]:
        return self.entries


@pytest.mark.parametrize(
    ("places", "fault"),
    [([0, 1, 2], None), ([0, 1], "1 got nothing"), ([0, 1, 2, 1], "1 got it more than once")],
)
def test_who_got_nothing_or_twice_is_found_in_the_book(places: list[int], fault: str | None) -> None:
    book = [
        {"chat_id": f"{_FIRST['product'] + place}@c.us", "acted_at": float(number)}
        for number, place in enumerate(places)
    ]
    contender = Contender("product", lambda first, number: None, _Book(book), 3)  # type: ignore[arg-type]
    contender.run()

    if fault is None:
        assert "3 people, one message each" in contender.check()
    else:
        with pytest.raises(WrongResult, match=fault):
            contender.check()


def test_the_reasons_of_a_hundred_lines() -> None:
    assert _wanted(100) == {
        "": 90,
        "invalid_phone": 2,
        "duplicate": 2,
        "opted_out": 2,
        "missing_variable": 2,
        "contact_on_hold": 1,
        "text_too_long": 1,
    }


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--people", "0"], ["--rounds", "x"]])
def test_a_wrong_argument_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        options.from_arguments(arguments)


def test_a_small_run_measures_checks_and_writes_down(tmp_path: Path) -> None:
    written = tmp_path / "found.json"
    arguments = [
        "--only",
        "freeze,joining,counters,feeding",
        "--people",
        "400",
        "--rounds",
        "1",
        "--json",
        str(written),
    ]

    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )

    # A promise may be missed by so small a run; a wrong result may not.
    assert done.returncode in {0, 1}, done.stderr
    found = json.loads(written.read_text())
    assert [figure["against"] for figure in found["figures"]] == [
        "COPY of the same rows",
        "one by one",
        "one GROUP BY over the messages alone",
        "COPY of the same messages",
    ]
    assert all(figure["ratio"] > 0 for figure in found["figures"])
    assert found["figures"][0]["checked"].startswith("in each freeze 360 included")
    assert found["machine"]["cores"] >= 1
    assert "COPY of the same rows" in done.stdout
