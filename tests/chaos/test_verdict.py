"""The verdict finds each kind of broken promise, and traces each doubt to its fault or says that it can't."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos import verdict
from chaos.herd import Death
from chaos.journal import MAYBE, Call
from chaos.verdict import LEAST_GAP, Fate, Trouble, Verdict

SENT = Fate("m", "read", 1, "", "", 100.0)
DOUBT = replace(SENT, status="in_doubt", code="no_evidence", sent="maybe")
PERSON = ("a1", "5511980000000")


def entry(at: float, phone: str = PERSON[1], round_: str = PERSON[0], session: str = "s") -> dict[str, Any]:
    text = f"Oi, o curso Python {round_} chegou"
    return {"text": text, "chat_id": f"{phone}@c.us", "session": session, "acted_monotonic": at}


def judged(
    fates: dict[tuple[str, str], Fate],
    book: list[dict[str, Any]],
    *,
    calls: dict[tuple[str, int], Call] | None = None,
    trouble: Trouble | None = None,
) -> Verdict:
    return verdict.compare(book, fates, calls or {}, trouble or Trouble())


def test_what_everybody_agrees_on_is_clean() -> None:
    found = judged({PERSON: SENT}, [entry(1)])
    assert found.is_clean
    assert (found.messages, found.people, dict(found.statuses)) == (1, 1, {"read": 1})


def test_a_second_message_is_doubled() -> None:
    found = judged({PERSON: SENT}, [entry(1), entry(9)])
    assert found.doubled == ["a1 5511980000000: 2 times"]
    assert not found.is_clean


@pytest.mark.parametrize(
    ("fates", "book"),
    [
        ({PERSON: SENT}, []),
        ({PERSON: replace(SENT, status="queued")}, [entry(1)]),
        ({PERSON: replace(SENT, status="failed", sent="no")}, [entry(1)]),
        ({}, [entry(1)]),
    ],
    ids=["said but not got", "got but queued", "got but told as not sent", "got but unknown"],
)
def test_rows_that_contradict_the_phones_are_lost(fates: dict[tuple[str, str], Fate], book: list[Any]) -> None:
    assert len(judged(fates, book).lost) == 1


def test_who_got_nothing_and_is_not_in_doubt_is_lost() -> None:
    assert judged({PERSON: replace(SENT, status="queued")}, []).lost


def test_who_was_called_off_got_nothing() -> None:
    called_off = replace(SENT, status="canceled", called_off=True)
    assert judged({PERSON: called_off}, []).is_clean
    assert judged({PERSON: called_off}, [entry(1)]).lost
    assert judged({PERSON: replace(called_off, called_off=False)}, []).lost


def test_two_acts_of_a_number_below_the_pace_are_early() -> None:
    other = ("a1", "5511980000001")
    fates = {PERSON: SENT, other: SENT}
    assert judged(fates, [entry(1), entry(1 + LEAST_GAP, other[1])]).is_clean
    assert judged(fates, [entry(1), entry(1.1, other[1], session="t")]).is_clean
    found = judged(fates, [entry(1), entry(0.9 + LEAST_GAP, other[1])])
    assert len(found.early) == 1
    assert found.least_gap == pytest.approx(LEAST_GAP - 0.1)


KILLED = Trouble(deaths=[Death("worker1", 7, "killed", 100.5)])
SPOILT = Trouble(spoilt=[(98.0, 102.0)])
RESTARTED = Trouble(restarts=[101.0])
STOPPED = Trouble(stops=[(100.0, 110.0, 7)])
CALL = Call(7, 100.0)


@pytest.mark.parametrize(
    ("call", "trouble", "cause"),
    [
        (None, KILLED, "killed before the call"),
        (CALL, KILLED, "killed in the call"),
        (replace(CALL, ended="sent", ended_at=100.2), KILLED, "killed before the settle"),
        (replace(CALL, ended="sent", ended_at=100.2), RESTARTED, "database away at the settle"),
        (replace(CALL, ended=f"{MAYBE}reset", ended_at=100.2), SPOILT, "answer: reset"),
        (CALL, STOPPED, "stopped in the call"),
    ],
)
def test_a_doubt_is_traced_to_its_fault(call: Call | None, trouble: Trouble, cause: str) -> None:
    calls = {} if call is None else {("m", 1): call}
    for book in ([], [entry(1)]):
        found = judged({PERSON: DOUBT}, book, calls=calls, trouble=trouble)
        assert found.is_clean
        assert dict(found.doubts) == {cause: 1}


@pytest.mark.parametrize(
    ("call", "trouble"),
    [
        (None, Trouble()),
        (None, Trouble(deaths=[Death("dispatcher1", 7, "killed", 100.5)])),
        (CALL, Trouble(deaths=[Death("worker2", 8, "killed", 100.5)])),
        (CALL, Trouble(deaths=[Death("worker1", 7, "killed", 120.0)])),
        (replace(CALL, ended="sent", ended_at=100.2), SPOILT),
        (replace(CALL, ended=f"{MAYBE}reset", ended_at=100.2), Trouble()),
        (replace(CALL, ended="waha_rate_limited", ended_at=100.2), SPOILT),
    ],
    ids=[
        "nobody died",
        "another part died",
        "another worker died",
        "died later",
        "sent",
        "no fault was set",
        "not sent",
    ],
)
def test_a_doubt_without_a_fault_of_its_own_is_unexplained(call: Call | None, trouble: Trouble) -> None:
    found = judged({PERSON: DOUBT}, [], calls={} if call is None else {("m", 1): call}, trouble=trouble)
    assert len(found.unexplained) == 1
    assert not found.is_clean
