"""May this message leave now? The policy's own answer: pure, clause by clause, in one order.

The gate gives the same one from the figures of the lane (``messaging/sql/engine_judge.sql``; a property test holds
the two together). What is asked before the gate (freeze, feed, outlook) asks single clauses of this chain, so that
everything says the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum

from messaging import policy
from messaging.policy import Facts, Figures

HUMAN, BROADCAST = 0, 2


class Verdict(StrEnum):
    """What the gate answers (design: engine, invariant 3)."""

    GO = "go"
    STALE = "stale"
    NEVER = "never"
    MESSAGE_LATER = "message_later"
    STREAM_LATER = "stream_later"
    LANE_LATER = "lane_later"
    FIGURES_STALE = "figures_stale"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the code of the rule that binds, and when next; None where only an event can tell."""

    verdict: Verdict
    code: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What a lane has done and what has become of it. ``used``: of the day that ended or ends at ``counted_until``."""

    connected: bool
    holds: tuple[str, ...]
    any_at: datetime
    broadcast_at: datetime
    used: int
    used_new: int
    counted_until: datetime


@dataclass(frozen=True, slots=True)
class StreamNow:
    """A broadcast from below. ``hours``: its own, within those of the numbers."""

    state: str = "running"
    expires_at: datetime | None = None
    hours: tuple[time, time] | None = None


@dataclass(frozen=True, slots=True)
class PersonNow:
    """Who would get it. ``was_begun``: the stream has begun another message for him; ``is_new``: nobody of the
    organization ever wrote to him, or he to it."""

    is_blocked: bool = False
    is_on_hold: bool = False
    was_begun: bool = False
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class MessageNow:
    """What asks to leave. ``person`` is None where nobody is known, or where he was erased."""

    priority: int
    is_claimed: bool = True
    not_before: datetime | None = None
    expires_at: datetime | None = None
    stream: StreamNow | None = None
    person: PersonNow | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """All that a clause may look at. ``figures`` hold at ``now``; ``keep_open``: seconds that a send may take."""

    message: MessageNow
    history: History
    facts: Facts
    figures: Figures
    now: datetime
    keep_open: float

    @property
    def is_automatic(self) -> bool:
        return self.message.priority > HUMAN

    @property
    def is_broadcast(self) -> bool:
        return self.message.priority == BROADCAST

    @property
    def is_new(self) -> bool:
        return self.is_automatic and self.message.person is not None and self.message.person.is_new

    @property
    def used(self) -> int:
        """Messages of this day: a day that is over counts no more."""
        return self.history.used if self.history.counted_until > self.now else 0

    @property
    def used_new(self) -> int:
        return self.history.used_new if self.history.counted_until > self.now else 0


Clause = Callable[[Case], Judgement | None]


def judge(
    facts: Facts,
    history: History,
    message: MessageNow,
    now: datetime,
    *,
    keep_open: float,
    spread: float = 0.0,
    pace_scale: float = 1.0,
) -> tuple[Figures, Judgement]:
    """The figures that hold at ``now``, and the first clause of the chain that binds; ``go`` where none does."""
    figures = policy.figures(facts, now, keep_open=keep_open, spread=spread, pace_scale=pace_scale)
    return figures, verdict(Case(message, history, facts, figures, now, keep_open))


def verdict(case: Case) -> Judgement:
    """The first clause of the chain that binds; ``go`` where none does."""
    answers = (clause(case) for clause in CHAIN)
    return next((answer for answer in answers if answer is not None), Judgement(Verdict.GO))


def person_code(person: PersonNow | None, *, is_broadcast: bool = True) -> str:
    """Why an automatic message to him never leaves; empty where nothing of his forbids it."""
    if person is None:
        return "contact_erased" if is_broadcast else ""
    if person.is_blocked:
        return "contact_blocked"
    if person.is_on_hold:
        return "contact_on_hold"
    return ""


def _stale(case: Case) -> Judgement | None:
    return None if case.message.is_claimed else Judgement(Verdict.STALE, "stale")


def _canceled(case: Case) -> Judgement | None:
    stream = case.message.stream
    if stream is not None and stream.state in {"canceled", "ended"}:
        return Judgement(Verdict.NEVER, "broadcast_canceled")
    return None


def _person(case: Case) -> Judgement | None:
    code = person_code(case.message.person, is_broadcast=case.is_broadcast) if case.is_automatic else ""
    return Judgement(Verdict.NEVER, code) if code else None


def _duplicate(case: Case) -> Judgement | None:
    twice = case.message.stream is not None and case.message.person is not None and case.message.person.was_begun
    return Judgement(Verdict.NEVER, "duplicate") if twice else None


def _expired(case: Case) -> Judgement | None:
    ends = [case.message.expires_at, None if case.message.stream is None else case.message.stream.expires_at]
    over = any(end is not None and end <= case.now for end in ends)
    return Judgement(Verdict.NEVER, "expired") if over else None


def _paused(case: Case) -> Judgement | None:
    stream = case.message.stream
    is_paused = stream is not None and stream.state == "paused"
    return Judgement(Verdict.STREAM_LATER, "broadcast_paused") if is_paused else None


def _rests(case: Case) -> Judgement | None:
    until = case.message.not_before
    return Judgement(Verdict.MESSAGE_LATER, "retry_wait", until) if until is not None and until > case.now else None


def _disconnected(case: Case) -> Judgement | None:
    return None if case.history.connected else Judgement(Verdict.LANE_LATER, "channel_disconnected")


def _held(case: Case) -> Judgement | None:
    holds = case.history.holds
    return Judgement(Verdict.LANE_LATER, holds[0]) if holds else None


def _barred(case: Case) -> Judgement | None:
    if case.is_broadcast and case.figures.barred:
        return Judgement(Verdict.STREAM_LATER, case.figures.barred, case.figures.barred_until)
    return None


def _closed(case: Case) -> Judgement | None:
    opens_at = case.figures.open_from
    if case.is_automatic and opens_at > case.now:
        return Judgement(Verdict.LANE_LATER, "outside_window", opens_at)
    return None


def _stream_closed(case: Case) -> Judgement | None:
    stream = case.message.stream
    if stream is None or stream.hours is None:
        return None
    opens_at, _ = policy.window(case.facts, case.now, keep_open=case.keep_open, hours=stream.hours)
    return Judgement(Verdict.STREAM_LATER, "outside_window", opens_at) if opens_at > case.now else None


def _used_up(case: Case) -> Judgement | None:
    cap = case.figures.cap_soft if case.is_automatic else case.figures.cap_hard
    if case.used >= min(cap, case.figures.cap_hard):
        return Judgement(Verdict.LANE_LATER, "daily_limit", case.figures.day_ends_at)
    return None


def _restricted(case: Case) -> Judgement | None:
    if case.is_new and case.figures.restricted:
        return Judgement(Verdict.MESSAGE_LATER, "channel_restricted", case.figures.restricted_until)
    return None


def _too_many_new(case: Case) -> Judgement | None:
    if case.is_new and case.used_new >= case.figures.cap_new:
        return Judgement(Verdict.MESSAGE_LATER, "new_people_limit", case.figures.day_ends_at)
    return None


def _paced(case: Case) -> Judgement | None:
    if case.history.any_at > case.now:
        return Judgement(Verdict.LANE_LATER, "pace", case.history.any_at)
    if case.is_broadcast and case.history.broadcast_at > case.now:
        return Judgement(Verdict.LANE_LATER, "pace", case.history.broadcast_at)
    return None


# The order is part of the contract: of several rules that bind, the first names itself.
CHAIN: tuple[Clause, ...] = (
    _stale,
    _canceled,
    _person,
    _duplicate,
    _expired,
    _paused,
    _rests,
    _disconnected,
    _held,
    _barred,
    _closed,
    _stream_closed,
    _used_up,
    _restricted,
    _too_many_new,
    _paced,
)
