"""The verdict on a run: the simulator's book, the rows and the workers' journal against each other."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import psycopg

from chaos import journal, options
from chaos.herd import Death
from permissions import ids

_ROUND = re.compile(r"Python ([a-z]+\d+)")
_UNEXPLAINED = "unexplained"
# (round, phone)
Person = tuple[str, str]
_REACHED = {"sent", "delivered", "read", "played"}
_PEOPLE = """
SELECT b.id, r.phone, m.id, m.status, m.attempt, m.error_code, m.error_sent, m.sending_at,
  b.status = 'canceled'
FROM broadcasts b JOIN broadcast_recipients r ON r.broadcast_id = b.id JOIN messages m ON m.id = r.message_id
WHERE r.state = 'fed'
"""
# Between two broadcast messages of a number, at the least (messaging.rules), and what clocks may differ by.
LEAST_GAP = 5.0 * options.PACE_SCALE
_CLOCKS = 0.005
_BUSY = options.DEADLINE_SECONDS + options.SETTLE_SECONDS + 5
# What a settle takes, and the nursery to notice a death, on a machine whose cores are all at work.
_MOMENT = 2.0
_CALLED_WITHIN = 1.0 + _MOMENT


@dataclass
class Verdict:
    """What was found. Empty lists are what the engine promises."""

    messages: int = 0
    people: int = 0
    least_gap: float = float("inf")
    statuses: Counter[str] = field(default_factory=Counter)
    doubled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    doubts: Counter[str] = field(default_factory=Counter)
    breaches: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.doubled or self.lost or self.early or self.unexplained or self.breaches)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a doubt may come from. Epoch seconds; ``stops`` are (from, until, process), ``spoilt`` (from, until)."""

    deaths: Sequence[Death] = ()
    stops: Sequence[tuple[float, float, int]] = ()
    restarts: Sequence[float] = ()
    spoilt: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Fate:
    """What the rows say of one person of one broadcast."""

    message: str
    status: str
    attempt: int
    code: str
    sent: str
    sending_at: float
    called_off: bool = False

    @property
    def is_open(self) -> bool:
        """Nobody knows whether it left."""
        return self.status == "in_doubt" or (self.status == "failed" and self.sent == "maybe")


def compare(
    book: Sequence[Mapping[str, Any]],
    fates: Mapping[Person, Fate],
    calls: Mapping[journal.Key, journal.Call],
    trouble: Trouble,
) -> Verdict:
    """Hold what phones got, what rows say of each person, and what workers did against each other."""
    verdict = Verdict(messages=len(book), people=len(fates))
    got = _got(book)
    _doubled_and_early(verdict, book, got)
    for person, fate in fates.items():
        verdict.statuses[fate.status] += 1
        name = f"{' '.join(person)} ({fate.status}, attempt {fate.attempt}, message {fate.message})"
        if fate.is_open:
            call = calls.get((fate.message, fate.attempt))
            cause = _cause(fate, call, trouble)
            verdict.doubts[cause] += 1
            if cause == _UNEXPLAINED:
                verdict.unexplained.append(f"{name}: {fate.code}, {call}")
        elif fate.called_off and fate.status == "canceled" and person not in got:
            continue
        elif fate.status not in _REACHED or person not in got:
            verdict.lost.append(f"{name}: the phone got {got.get(person, 0)}")
    for person in got.keys() - fates.keys():
        verdict.lost.append(f"{' '.join(person)}: the phone got what no row knows")
    return verdict


def fates(database_url: str, rounds: Mapping[str, str]) -> dict[Person, Fate]:
    """What became of each person who was to get a message; ``rounds``: a broadcast's id → the mark in its words."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(_PEOPLE).fetchall()
    found: dict[Person, Fate] = {}
    for broadcast, phone, message, status, attempt, code, sent, at, called_off in rows:
        round_ = rounds.get(ids.encode(ids.BROADCAST, broadcast), "?")
        sending_at = at.timestamp() if at else 0.0
        found[round_, phone] = Fate(str(message), status, attempt, code, sent, sending_at, called_off)
    return found


def _got(book: Sequence[Mapping[str, Any]]) -> Counter[Person]:
    """How often each phone got the words of each round."""
    found: Counter[Person] = Counter()
    for entry in book:
        match = _ROUND.search(entry["text"] or "")
        found[match[1] if match else "?", entry["chat_id"].partition("@")[0]] += 1
    return found


def _doubled_and_early(verdict: Verdict, book: Sequence[Mapping[str, Any]], got: Mapping[Person, int]) -> None:
    verdict.doubled = [f"{round_} {phone}: {number} times" for (round_, phone), number in got.items() if number > 1]
    by_number: defaultdict[str, list[float]] = defaultdict(list)
    for entry in book:
        by_number[entry["session"]].append(entry["acted_monotonic"])
    for session, times in by_number.items():
        for before, after in pairwise(sorted(times)):
            verdict.least_gap = min(verdict.least_gap, after - before)
            if after - before < LEAST_GAP - _CLOCKS:
                verdict.early.append(f"{session}: {after - before:.3f} s")


def _cause(fate: Fate, call: journal.Call | None, trouble: Trouble) -> str:
    """Which fault explains that nobody knows what became of an attempt; "unexplained" where none does."""
    if call is None:
        # Its worker passed the gate and never came to the call.
        return "killed before the call" if _worker_died(trouble, fate.sending_at, _CALLED_WITHIN) else _UNEXPLAINED
    if any(
        pid == call.pid and since <= call.began_at + _BUSY and until >= call.began_at
        for since, until, pid in trouble.stops
    ):
        return "stopped in the call"
    if call.ended is None or call.ended_at is None:
        died = _died(trouble, call.pid, call.began_at, options.DEADLINE_SECONDS + _MOMENT)
        return "killed in the call" if died else _UNEXPLAINED
    if call.ended.startswith(journal.MAYBE):
        # A doubt that no fault of the gateway's made would be one of ours.
        spoilt = any(since - _MOMENT <= call.ended_at and call.began_at <= until for since, until in trouble.spoilt)
        return f"answer: {call.ended.removeprefix(journal.MAYBE)}" if spoilt else _UNEXPLAINED
    first, last = call.ended_at - options.SETTLE_SECONDS, call.ended_at + options.SETTLE_SECONDS
    is_away = any(first <= at <= last for at in trouble.restarts)
    patience = options.SETTLE_SECONDS if is_away else _MOMENT
    if _died(trouble, call.pid, call.ended_at, patience):
        return "killed before the settle"
    return "database away at the settle" if is_away else _UNEXPLAINED


def _died(trouble: Trouble, pid: int, since: float, seconds: float) -> bool:
    return any(death.pid == pid and since - _MOMENT <= death.at <= since + seconds for death in trouble.deaths)


def _worker_died(trouble: Trouble, since: float, seconds: float) -> bool:
    workers = (death for death in trouble.deaths if death.name.startswith("worker"))
    return any(since - _MOMENT <= death.at <= since + seconds for death in workers)
