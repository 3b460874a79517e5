"""Whatever happens in whatever order, a message stays inside the chart of docs/engine.md, and goes forward only.

Hypothesis draws the order: claims, gates, answers of every kind, doubled and late ones, acks, echoes, look-ups,
pauses, cancels, ends, opt-outs, crashes, people's decisions. After each step every row is held against the chart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from events import services as events
from messaging import db, decisions, delivery, gate, lanes, receipts, recovery, retries, streams
from messaging.adapters import Ack, Echo, Found, Outgoing
from messaging.lanes import Claim
from messaging.models import Message, Receipt, Stream
from permissions.ids import new_id
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

EVIDENCE = {"sent", "delivered", "read", "played"}
ENDS = {"canceled", "expired", "skipped"}
RANK = {"sent": 3, "delivered": 4, "read": 5, "played": 6}
# The chart. "in_doubt" from what waits is for retried doubts only; each rule is one step of it, or a few.
CHART = {
    "queued": {"claimed", *ENDS, *EVIDENCE, "in_doubt"},
    "claimed": {"queued", "sending", *ENDS, *EVIDENCE, "in_doubt"},
    "sending": {"queued", "failed", "in_doubt", "canceled", *EVIDENCE},
    "sent": {"delivered", "read", "played", "failed"},
    "delivered": {"read", "played"},
    "read": {"played"},
    "played": set(),
    "failed": {"queued", *EVIDENCE},
    "in_doubt": {"queued", "failed", *EVIDENCE},
    "canceled": EVIDENCE,
    "expired": EVIDENCE,
    "skipped": EVIDENCE,
}
OUTCOMES = {
    "sent": retries.Outcome("sent"),
    "not_sent": retries.Outcome("not_sent", counts=True),
    "lane": retries.Outcome("not_sent", lane_wait=1.0),
    "failed": retries.Outcome("failed", counts=True),
    "unknown": retries.Outcome("unknown"),
}
ANYONE = st.integers(0, 11)
MOST = 8


@dataclass
class Hand:
    """A worker with a claim. ``attempt``: the one it has begun, 0 before its gate."""

    claim: Claim
    attempt: int = 0
    provider_id: str | None = None


@dataclass
class Issued:
    """An id under which an attempt left, as the provider may tell of it."""

    message_id: UUID
    provider_id: str
    attempt: int


@dataclass
class World:
    """What the machine remembers beside the rows."""

    messages: list[UUID] = field(default_factory=list)
    hands: list[Hand] = field(default_factory=list)
    issued: list[Issued] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    before: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    decided: set[UUID] = field(default_factory=set)


class Chart(RuleBasedStateMachine):
    """One lane, and a few messages of two streams and of none."""

    make_lab: Callable[..., Lab]
    number = itertools.count()

    @initialize(takes_ids=st.booleans())
    def begin(self, takes_ids: bool) -> None:
        # Each run is rolled back: the next one's dispatcher finds no lane but its own.
        self.run = transaction.atomic()
        self.run.__enter__()
        self.lab = type(self).make_lab(f"loja-{next(self.number)}")
        self.lab.adapter.takes_ids = takes_ids
        self.world = World(streams=[self.lab.stream(), self.lab.stream()])
        self.world.messages = [
            message.pk
            for message in (
                *self.lab.feed(self.world.streams[0], 2),
                *self.lab.feed(self.world.streams[1], 1, after=2),
                self.lab.queue(),
            )
        ]

    def teardown(self) -> None:
        if hasattr(self, "run"):
            transaction.set_rollback(True)
            self.run.__exit__(None, None, None)

    def message(self, place: int, *wanted: str) -> Message:
        """One of them; of those in the wanted statuses where there are any."""
        rows = {row.pk: row for row in Message.unscoped.filter(pk__in=self.world.messages)}
        ordered = [rows[key] for key in self.world.messages]
        candidates = [row for row in ordered if row.status in wanted] or ordered
        return candidates[place % len(candidates)]

    def hand(self, place: int) -> Hand:
        return self.world.hands[place % len(self.world.hands)]

    def stream(self, place: int) -> Stream:
        return streams.lock(self.world.streams[place % 2].pk)

    @rule(begins=st.booleans())
    def claim(self, begins: bool) -> None:
        self.lab.rested()
        claims = lanes.claim(limit=5)
        self.world.hands += [Hand(claim) for claim in claims]
        if claims and begins:
            self.holds()
            self.pass_gate(len(self.world.hands) - 1)

    @precondition(lambda self: len(self.world.messages) < MOST)
    @rule(place=ANYONE)
    def queue(self, place: int) -> None:
        stream = self.stream(place)
        if place % 3 == 0 or stream.state != Stream.State.RUNNING:
            self.world.messages.append(self.lab.queue().pk)
        else:
            self.world.messages += [m.pk for m in self.lab.feed(stream, 1, after=len(self.world.messages))]

    @precondition(lambda self: self.world.hands)
    @rule(place=ANYONE)
    def pass_gate(self, place: int) -> None:
        hand = self.hand(place)
        work = delivery._load(hand.claim)
        wanted = work.outgoing.provider_id if work else None
        before = Message.unscoped.get(pk=hand.claim.message_id)
        answer = gate.ask(hand.claim, wanted)
        if answer.verdict is not gate.Verdict.GO:
            return
        assert work is not None, "a gate let pass what could not be loaded"
        # Between two begun attempts: a definite "not sent", or a person's decision.
        assert {entry["attempt"] for entry in before.history} >= set(range(1, answer.attempt)), before.history
        if before.doubted and before.provider_id and self.lab.adapter.takes_ids:
            assert wanted == before.provider_id
        hand.attempt, hand.provider_id = answer.attempt, wanted
        given = wanted or f"3EB0{new_id().hex[-18:].upper()}"
        self.world.issued.append(Issued(hand.claim.message_id, given, answer.attempt))

    @precondition(lambda self: any(hand.attempt for hand in self.world.hands))
    @rule(place=ANYONE, word=st.sampled_from(sorted(OUTCOMES)), times=st.integers(1, 2))
    def settle(self, place: int, word: str, times: int) -> None:
        begun = [hand for hand in self.world.hands if hand.attempt]
        hand = begun[place % len(begun)]
        sent = word == "sent"
        known = [
            i.provider_id
            for i in self.world.issued
            if (i.message_id, i.attempt) == (hand.claim.message_id, hand.attempt)
        ]
        before = Message.unscoped.get(pk=hand.claim.message_id)
        for _ in range(times):
            result = delivery.Result(OUTCOMES[word], known[0] if sent and known else None, "" if sent else word)
            delivery.settle(hand.claim, hand.attempt, result)
        after = Message.unscoped.get(pk=hand.claim.message_id)
        if not sent and before.attempt > hand.attempt:
            assert (after.status, after.history) == (before.status, before.history), "an older attempt has no say"

    @precondition(lambda self: self.world.hands)
    @rule(place=ANYONE)
    def crash(self, place: int) -> None:
        self.world.hands.remove(self.hand(place))

    @rule()
    def end_leases(self) -> None:
        self.lab.lane(busy_until="clock_timestamp() - interval '1 second'")
        lanes.free_overdue()

    @precondition(lambda self: self.world.issued)
    @rule(told=st.lists(st.tuples(ANYONE, st.sampled_from([-1, 3, 4, 5, 6])), min_size=1, max_size=4))
    def ack(self, told: list[tuple[int, int]]) -> None:
        issued, now = self.world.issued, db.database_now()
        acks = [
            Ack(issued[place % len(issued)].provider_id, rank, now, "ack_error" if rank < 0 else "")
            for place, rank in told
        ]
        receipts.apply_acks(self.lab.channel.pk, acks)

    @precondition(lambda self: self.world.issued)
    @rule(place=ANYONE)
    def echo(self, place: int) -> None:
        issued = self.world.issued[place % len(self.world.issued)]
        message = Message.unscoped.get(pk=issued.message_id)
        seen = Echo(issued.provider_id, message.address, message.text, db.database_now())
        receipts.match_echo(self.lab.channel.pk, seen, [message.address])

    @rule(minutes=st.sampled_from([2, 6, 16]), finds=st.sampled_from([None, 3, 4, 5]))
    def wait(self, minutes: int, finds: int | None) -> None:
        self.lab.adapter.on_find = lambda outgoing: self.found(outgoing, finds)
        ago = db.database_now() - timedelta(minutes=minutes)
        Message.objects.of(self.lab.organization).filter(status__in=["sending", "in_doubt"]).update(sending_at=ago)
        recovery.look_up()
        recovery.doubt_unheard()

    def found(self, outgoing: Outgoing, rank: int | None) -> Found | None:
        return Found(str(outgoing.provider_id), rank) if rank else None

    @rule(place=ANYONE, what=st.sampled_from(["pause", "resume", "cancel", "end", "expire", "block", "unblock"]))
    def disturb(self, place: int, what: str) -> None:
        if what == "expire":
            Message.unscoped.filter(pk=self.message(place).pk).update(expires_at=db.database_now())
            recovery.end_queued()
        elif what in {"block", "unblock"}:
            person = self.lab.person(place % len(self.world.messages))
            type(person).unscoped.filter(pk=person.pk).update(is_blocked=what == "block")
        else:
            self.move(self.stream(place), what)

    def move(self, stream: Stream, what: str) -> None:
        if stream.state == Stream.State.CANCELED or (what == "end" and streams.has_unfinished(stream)):
            return
        moves: dict[str, Callable[[Stream], Any]] = {
            "pause": streams.pause, "resume": streams.resume, "cancel": streams.cancel, "end": streams.end,
        }  # fmt: skip
        moves[what](stream)

    @rule(place=ANYONE)
    def retry_failed(self, place: int) -> None:
        stream, now = self.stream(place), db.database_now()
        if stream.state == Stream.State.CANCELED:
            return
        self.world.decided |= {m.pk for m in Message.unscoped.filter(stream=stream, status="failed", error_sent="no")}
        streams.retry_failed(stream, new_end=now + timedelta(hours=1), now=now)

    @rule(place=ANYONE, accepts=st.booleans())
    def send_again(self, place: int, accepts: bool) -> None:
        message, now = self.message(place, "failed", "in_doubt"), db.database_now()
        canceled = message.stream_id and self.stream_of(message).state == Stream.State.CANCELED
        try:
            decisions.send_again(message.pk, accepts_duplicate=accepts, actor=events.SYSTEM, now=now)
        except streams.StreamEnded:
            assert canceled
        except decisions.Undecidable:
            assert message.status not in {"failed", "in_doubt"}
        except decisions.DuplicateRisk:
            assert not accepts
            assert message.error_sent != "no"
        else:
            assert not canceled
            self.world.decided.add(message.pk)

    @rule(place=ANYONE)
    def assume_sent(self, place: int) -> None:
        message = self.message(place, "in_doubt")
        try:
            decisions.assume_sent(message.pk, actor=events.SYSTEM, now=db.database_now())
        except decisions.Undecidable:
            assert message.status != "in_doubt"

    def stream_of(self, message: Message) -> Stream:
        assert message.stream_id is not None
        return Stream.unscoped.get(pk=message.stream_id)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "world"):
            return
        lane = self.lab.lane()
        rows = list(Message.objects.of(self.lab.organization).order_by("pk"))
        best: dict[UUID, int] = {}
        for receipt in Receipt.objects.filter(channel=self.lab.channel, message__isnull=False, failed_at=None):
            assert receipt.message_id is not None
            best[receipt.message_id] = max(receipt.rank, best.get(receipt.message_id, 0))
        for message in rows:
            self.stays_inside(message)
            self.is_explained(message, lane, best.get(message.pk, 0))
        assert lane["used"] == sum(
            message.attempt - sum(entry.get("sent") == "no" for entry in message.history) for message in rows
        ), "each begun attempt is counted once, but those that are known not to have left"
        self.world.decided.clear()

    def stays_inside(self, message: Message) -> None:
        before = self.world.before.get(message.pk)
        if before is not None and before["status"] != message.status:
            assert message.status in CHART[before["status"]], f"{before['status']} → {message.status}"
            if before["status"] in {"failed", "in_doubt"} and message.status == "queued":
                assert message.pk in self.world.decided, "only a person sends it again"
            if message.status == "in_doubt" and before["status"] in {"queued", "claimed"}:
                assert before["doubted"]
            if before["status"] == "failed" and before["error_sent"] == "maybe":
                assert message.status != "sent", "what failed by ack -1 is lifted by delivered and better"
        if before is not None:
            assert message.attempt >= before["attempt"]
        self.world.before[message.pk] = {
            "status": message.status,
            "doubted": message.doubted,
            "attempt": message.attempt,
            "error_sent": message.error_sent,
        }

    def is_explained(self, message: Message, lane: dict[str, Any], rank: int) -> None:
        if message.status == "claimed":
            assert (lane["busy_message"], lane["lease"]) == (message.pk, message.lease)
        if message.status in {"queued", "claimed"} and message.stream_id is not None:
            assert self.stream_of(message).state != Stream.State.CANCELED
        closed = {entry["attempt"] for entry in message.history}
        if message.status in {"queued", "claimed", *ENDS} or (message.status, message.error_sent) == ("failed", "no"):
            assert closed >= set(range(1, message.attempt + 1)), "an attempt may have left"
            assert message.doubted == any("decision" in entry for entry in message.history)
        if message.status in ENDS or message.error_sent == "no":
            assert not message.doubted or message.status == "queued"
        if message.status == "in_doubt":
            assert message.error_sent == "maybe"
        if rank >= RANK["sent"]:
            assert RANK.get(message.status, 0) >= rank, "evidence was overlooked"


def test_every_interleaving_stays_inside_the_chart(
    make_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Owner:
        def go_on(self, **_facts: Any) -> None: ...

    monkeypatch.setattr(decisions, "import_string", lambda _path: Owner)
    machine = type("Drawn", (Chart,), {"make_lab": staticmethod(make_lab)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            derandomize=False,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
