"""The gate's verdict, which compares figures with the clock, is the policy's, which judges rules: for any lane,
message, stream, person and time, whenever the figures were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from audience.models import Contact
from messaging import db, lanes, policy, streams, verdicts
from messaging.models import Message, Stream
from messaging.policy import Facts, Restriction
from messaging.rules import DEFAULTS
from messaging.verdicts import History, Judgement, MessageNow, PersonNow, StreamNow, Verdict
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

KEEP_OPEN = 20.0
SPREAD = 0.25
ZONES = ("America/Sao_Paulo", "America/Santiago", "America/New_York", "Asia/Kolkata")
# Around month ends, changes of clocks, a leap day and a Sunday.
DAYS = (
    date(2026, 11, 30), date(2026, 12, 6), date(2027, 2, 28), date(2028, 2, 29), date(2026, 9, 6), date(2026, 3, 8),
    date(2026, 11, 1), date(2026, 12, 31),
)  # fmt: skip
MOMENT = timedelta(microseconds=1)
NEAR = (-MOMENT, timedelta(0), MOMENT)
FAR = (timedelta(days=-1), timedelta(seconds=-1), *NEAR, timedelta(seconds=5), timedelta(days=2))
hours = st.sampled_from([time(0), time(2), time(7), time(8, 30), time(20), time(22)])


@dataclass(frozen=True)
class Situation:
    facts: Facts
    history: History
    message: MessageNow
    written_at: datetime
    now: datetime


@st.composite
def all_facts(draw: Callable[..., Any], around: datetime) -> Facts:
    rules = replace(
        DEFAULTS,
        opens=draw(st.one_of(st.just(time(0)), hours)),
        closes=draw(st.one_of(st.just(time(0)), hours)),
        sundays=draw(st.booleans()),
        holidays=draw(st.sampled_from(["", "", "BR-SP"])),
        daily_cap=draw(st.sampled_from([None, None, 3])),
        new_share=draw(st.sampled_from([0.5, 0.0])),
    )
    restrictions = draw(
        st.lists(
            st.builds(
                lambda began, lasts: Restriction("error_463", around + began, lasts and around + began + lasts),
                st.sampled_from([timedelta(days=-20), timedelta(minutes=-40), timedelta(minutes=-1)]),
                st.sampled_from([None, timedelta(minutes=20), timedelta(minutes=39), timedelta(minutes=90)]),
            ),
            max_size=2,
        )
    )
    return Facts(
        time_zone=draw(st.sampled_from(ZONES)),
        in_use_since=draw(st.sampled_from([None, around.date() - timedelta(days=5), date(2020, 1, 1)])),
        rules=rules,
        is_reserve=draw(st.integers(0, 5)) == 0,
        failed_share=draw(st.sampled_from([0.0, 0.03])),
        restrictions=tuple(restrictions),
    )


@st.composite
def situations(draw: Callable[..., Any]) -> Situation:
    day = draw(st.sampled_from(DAYS))
    written_at = datetime.combine(day, time(draw(st.integers(0, 23)), draw(st.sampled_from([0, 59]))), tzinfo=UTC)
    facts = draw(all_facts(written_at))
    figures = policy.figures(facts, written_at, keep_open=KEEP_OPEN, spread=SPREAD)
    bounds = [
        figures.open_from, figures.open_until, figures.open_until - timedelta(seconds=KEEP_OPEN),
        figures.figures_until, figures.day_ends_at, figures.restricted_until, written_at + timedelta(hours=3),
    ]  # fmt: skip
    now = draw(st.sampled_from([bound for bound in bounds if bound is not None])) + draw(st.sampled_from(NEAR))
    now = max(now, written_at)
    it = Situation(facts, draw(histories(now, figures)), draw(messages(now)), written_at, now)
    # Of rules that bind the first names itself: mostly those at the chain's beginning let pass.
    return calmed(it) if draw(st.integers(0, 4)) else it


def calmed(it: Situation) -> Situation:
    """The same where nothing but pace, hours, caps and restrictions can hold the message."""
    message, person = it.message, it.message.person
    calm = PersonNow(is_new=person.is_new) if person is not None else PersonNow(is_new=True)
    stream = None if message.stream is None else StreamNow(hours=message.stream.hours)
    return replace(
        it,
        facts=replace(it.facts, is_reserve=False, in_use_since=date(2020, 1, 1)),
        history=replace(it.history, connected=True, holds=()),
        message=MessageNow(message.priority, stream=stream, person=calm),
    )


def histories(now: datetime, figures: policy.Figures) -> st.SearchStrategy[History]:
    mostly = st.sampled_from([True, True, True, True, True, False])
    counts = st.sampled_from([0, 1, 2, 3, figures.cap_soft - 1, figures.cap_soft, figures.cap_hard, figures.cap_new])
    return st.builds(
        History,
        connected=mostly,
        holds=st.sampled_from([(), (), (), (), ("phone_changed",), ("gateway_failing", "phone_changed")]),
        any_at=moments(now),
        broadcast_at=moments(now),
        used=counts,
        used_new=counts,
        counted_until=st.just(figures.day_ends_at),
    )


def moments(now: datetime) -> st.SearchStrategy[datetime]:
    return st.sampled_from([*(timedelta(days=-1),) * 6, *FAR]).map(lambda offset: now + offset)


def maybe(now: datetime) -> st.SearchStrategy[datetime | None]:
    return st.one_of(st.none(), st.none(), moments(now))


@st.composite
def messages(draw: Callable[..., Any], now: datetime) -> MessageNow:
    priority = draw(st.sampled_from([0, 1, 2, 2]))
    known = draw(st.integers(0, 9)) > 0
    person = draw(st.builds(PersonNow, *(st.integers(0, 7).map(lambda n: n == 0),) * 3, is_new=st.booleans()))
    if person.was_begun:
        person = replace(person, is_new=False)
    own_hours = st.one_of(st.none(), st.tuples(hours, hours))
    late = st.sampled_from([None, None, None, now + timedelta(days=1), now, now - MOMENT, now + MOMENT])
    stream = StreamNow(
        state=draw(st.sampled_from(["running"] * 6 + ["paused", "canceled", "ended"])),
        expires_at=draw(late),
        hours=draw(own_hours),
    )
    return MessageNow(
        priority=priority,
        is_claimed=draw(st.integers(0, 15)) > 0,
        not_before=draw(st.sampled_from([None, None, None, now - MOMENT, now, now + MOMENT])),
        expires_at=None if priority == 2 else draw(late),
        stream=stream if priority == 2 else None,
        person=(person if priority == 2 else replace(person, was_begun=False)) if known else None,
    )


@pytest.fixture
def table(lab: Lab) -> Table:
    return Table.laid(lab)


@dataclass(frozen=True)
class Table:
    """One lane with one claimed message, and what else its verdict may depend on; rewritten for each situation."""

    lab: Lab
    stream: Stream
    contact: Contact
    message: UUID
    same_stream: UUID
    earlier: UUID

    @classmethod
    def laid(cls, lab: Lab) -> Table:
        stream, contact = lab.stream(), lab.person(1)
        rows = [lab.queue(contact_id=contact.pk).pk for _ in range(3)]
        Message.unscoped.filter(pk=rows[1]).update(stream=stream)
        return cls(lab, stream, contact, *rows)

    def lay(self, it: Situation) -> None:
        person = it.message.person
        self.lab.organization.time_zone = it.facts.time_zone
        self.lab.organization.save()
        if person is not None:
            Contact.unscoped.filter(pk=self.contact.pk).update(
                is_blocked=person.is_blocked, is_on_hold=person.is_on_hold
            )
            self._set(self.same_stream, status="sent" if person.was_begun else "queued")
            self._set(self.earlier, status="queued" if person.is_new else "received")
        self._set(
            self.message,
            status="claimed",
            lease=7,
            priority=it.message.priority,
            stream=None if it.message.stream is None else self.stream,
            contact=None if person is None else self.contact,
            not_before=it.message.not_before,
            expires_at=it.message.expires_at,
        )
        self._lay_stream(it)
        history = it.history
        db.rows(
            "UPDATE lanes SET connected = %s, holds = %s, any_at = %s, broadcast_at = %s, used = %s, used_new = %s,"
            " lease = %s, busy_message = %s, day_ends_at = %s WHERE channel_id = %s",
            [
                history.connected, list(history.holds), history.any_at, history.broadcast_at, history.used,
                history.used_new, 7 if it.message.is_claimed else 8, self.message, it.written_at + timedelta(days=9),
                self.lab.channel.pk,
            ],
        )  # fmt: skip
        self.write_figures(it.facts, it.written_at)

    def _lay_stream(self, it: Situation) -> None:
        if it.message.stream is None:
            return
        stream = self.stream
        stream.state, stream.expires_at = it.message.stream.state, it.message.stream.expires_at
        stream.window_opens, stream.window_closes = it.message.stream.hours or (None, None)
        stream.next_at = stream.open_until = None
        stream.save()
        self.write_hours(it.written_at)

    def _set(self, pk: UUID, **fields: Any) -> None:
        Message.unscoped.filter(pk=pk).update(**fields)

    def write_figures(self, facts: Facts, now: datetime) -> None:
        figures = policy.figures(facts, now, keep_open=KEEP_OPEN, spread=SPREAD)
        lanes.write_figures(self.lab.channel.pk, figures, now, rate=None)

    def write_hours(self, now: datetime) -> None:
        if self.stream.window_opens is not None:
            self.stream.organization = self.lab.organization
            streams.set_hours(self.stream, now)

    def judged(self, now: datetime) -> Judgement:
        verdict, code, until = db.row(
            "SELECT verdict, code, until_at FROM engine_judge(%s, %s, 7, %s, %s)",
            [self.message, self.lab.channel.pk, KEEP_OPEN, now],
        )
        return Judgement(Verdict(verdict), code, until)


@settings(
    max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(it=situations())
def test_the_gates_verdict_is_the_policys(table: Table, it: Situation) -> None:
    table.lay(it)
    answer = table.judged(it.now)
    if answer.verdict is Verdict.FIGURES_STALE:
        table.write_hours(it.now)
        table.write_figures(it.facts, it.now)
        answer = table.judged(it.now)
        event("figures were stale")
    _figures, expected = verdicts.judge(it.facts, it.history, it.message, it.now, keep_open=KEEP_OPEN, spread=SPREAD)
    event(f"{expected.verdict}: {expected.code}")
    assert answer == expected


def test_the_order_of_the_chain_is_pinned() -> None:
    assert [clause.__name__.strip("_") for clause in verdicts.CHAIN] == [
        "stale", "canceled", "person", "duplicate", "expired", "paused", "rests", "disconnected", "held", "barred",
        "closed", "stream_closed", "used_up", "restricted", "too_many_new", "paced",
    ]  # fmt: skip
