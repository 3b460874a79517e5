"""One message from its claim to what became of it: prepare → gate → send → settle."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from messaging import adapters, db, failures, gate, retries, rules, services, tallies
from messaging.adapters import ChannelAdapter, ChannelError, Fault, Outgoing, Sent
from messaging.faults import Point, reach
from messaging.gate import Verdict
from messaging.lanes import Claim
from messaging.models import Message

log = logging.getLogger(__name__)

_LOAD = "SELECT kind, type, address, body, faults, failures, known_id FROM engine_load(%s, %s, %s)"
# A gate whose answer never came: whatever it recorded, this process has sent nothing.
_UNBEGUN = "SELECT attempt FROM messages WHERE id = %s AND status = 'sending' AND lease = %s"
# A connection may be lost to a restart of the database; errors of data are not cured by asking again.
LOST = (OperationalError, InterfaceError)


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker holds of a claimed message."""

    claim: Claim
    adapter: ChannelAdapter
    outgoing: Outgoing
    faults: int
    failures: int


@dataclass(frozen=True, slots=True)
class Result:
    """What is to be settled."""

    outcome: retries.Outcome
    provider_id: str | None = None
    code: str = ""
    detail: str = ""


SENT = retries.Outcome("sent")


def deliver(claim: Claim) -> str:
    """Send one claimed message, if it may; the word of what happened, for the log and the tests.

    Safe to call twice, late, or for a claim that is gone: the row and its lease decide.
    """
    with db.borrowed():
        work = _load(claim)
    if work is None:
        # Gone or taken over; but a claim canceled meanwhile still holds its lane.
        with db.borrowed():
            return gate.ask(claim, None).verdict
    if work.adapter.is_slow_to_prepare(work.outgoing) and (refusal := prepare(work)) is not None:
        return refusal
    try:
        with db.borrowed():
            answer = gate.ask(claim, work.outgoing.provider_id)
    except LOST as error:
        log.warning("the gate's answer for %s was lost: %s", claim.message_id, type(error).__name__)
        take_back(claim)
        return "gate_lost"
    if answer.verdict is not Verdict.GO:
        return answer.verdict
    reach(Point.AFTER_GATE_COMMIT)
    result = send(work, answer)
    reach(Point.BEFORE_SETTLE_COMMIT)
    settle(claim, answer.attempt, result)
    tallies.count(result.outcome.result)
    reach(Point.AFTER_SETTLE)
    if opens_breaker(work, result):
        tell_held(claim)
    return result.outcome.result


def _load(claim: Claim) -> Work | None:
    found = db.engine(_LOAD, [claim.message_id, claim.lease, claim.organization_id])
    if not found:
        return None
    kind, type_, address, text, faults, failures, known_id = found[0]
    adapter = adapters.for_kind(kind)
    ours = adapter.new_provider_id(claim.channel_id)
    outgoing = Outgoing(
        message_id=claim.message_id,
        channel_id=claim.channel_id,
        type=type_,
        address=address,
        text=text,
        attempt=0,
        # What a person has sent again keeps its id: WhatsApp shows a message once.
        provider_id=ours and (known_id or ours),
    )
    return Work(claim, adapter, outgoing, faults, failures)


def prepare(work: Work) -> str | None:
    """What is slow comes after a read-only verdict: who opted out sees no "typing…" either.

    Where it fails, the message goes through no gate: the claim ends with its lease.
    """
    with db.borrowed():
        verdict = gate.judge(work.claim)
    if verdict not in {Verdict.GO, Verdict.FIGURES_STALE}:
        with db.borrowed():
            return gate.ask(work.claim, work.outgoing.provider_id).verdict
    try:
        work.adapter.prepare(work.outgoing, deadline=time.monotonic() + settings.CLAIM_LEASE_SECONDS / 2)
    except ChannelError as error:
        log.warning("message %s was not prepared: %s", work.claim.message_id, error.code)
        return "not_prepared"
    return None


def send(work: Work, answer: gate.Answer) -> Result:
    outgoing = replace(work.outgoing, attempt=answer.attempt)
    start_by = answer.asked_at + settings.FIRST_BYTE_SECONDS
    try:
        if time.monotonic() > start_by:
            # Stopped, or its answer was slow: what the gate judged may not hold any more.
            raise ChannelError("too_late", sent=Sent.NO, fault=Fault.GATEWAY)
        provider_id = work.adapter.send(
            outgoing, start_by=start_by, deadline=answer.asked_at + settings.SEND_DEADLINE_SECONDS
        )
    except ChannelError as error:
        outcome = retries.outcome(
            error,
            faults=work.faults,
            failures=work.failures,
            jitter=random.random(),  # noqa: S311 - a spread, not a secret
        )
        log.info("message %s attempt %s: %s (%s)", outgoing.message_id, answer.attempt, outcome.result, error.code)
        return Result(outcome, None, error.code, error.detail)
    except Exception as error:
        # Nobody knows how far it came, so it is in doubt.
        log.exception("the adapter broke at message %s", outgoing.message_id)
        return Result(retries.Outcome("unknown"), None, "adapter_error", type(error).__name__)
    reach(Point.AFTER_ANSWER_READ)
    return Result(SENT, provider_id)


def settle(claim: Claim, attempt: int, result: Result) -> None:
    """Write what became of an attempt; retried while the database is away, then left to the evidence."""
    if not insist(lambda: _settle(claim, attempt, result)):
        log.error("message %s attempt %s was not settled", claim.message_id, attempt)


def opens_breaker(work: Work, result: Result) -> bool:
    """Whether this failure is the one that holds the lane (SQL: engine_settle)."""
    failed = result.outcome.result == "unknown" or result.outcome.lane_wait > 0
    return failed and work.failures + 1 >= rules.BREAKER_FAILURES


def tell_held(claim: Claim) -> None:
    log.warning("lane %s is held: its gateway fails", claim.channel_id)
    insist(lambda: services.record_hold(claim.channel_id, rules.BREAKER_HOLD, now=db.database_now()))


def insist(statement: Callable[[], None]) -> bool:
    """Run a repeatable statement until the database answers, for as long as the lease allows."""
    give_up = time.monotonic() + settings.SETTLE_SECONDS
    pause = 0.1
    while time.monotonic() < give_up:
        try:
            with db.borrowed():
                statement()
        except LOST as error:
            log.warning("the database is away: %s", type(error).__name__)
            time.sleep(pause)
            pause = min(pause * 2, 2.0)
        else:
            return True
    return False


def _settle(claim: Claim, attempt: int, result: Result) -> None:
    outcome = result.outcome
    if outcome.result == "failed":
        # One transaction with its word in the timeline; every other outcome is one statement.
        with transaction.atomic():
            if _write(claim, attempt, result) == Message.Status.FAILED:
                failures.record(claim.message_id, code=result.code)
        return
    _write(claim, attempt, result)


def _write(claim: Claim, attempt: int, result: Result) -> str:
    """The status in which the message is left."""
    outcome = result.outcome
    ((status,),) = db.engine(
        "SELECT engine_settle(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [
            claim.message_id,
            claim.channel_id,
            claim.lease,
            attempt,
            outcome.result,
            result.provider_id,
            result.code,
            result.detail[:300],
            outcome.wait,
            outcome.lane_wait,
            outcome.counts,
            rules.BREAKER_FAILURES,
        ],
    )
    return str(status)


def take_back(claim: Claim) -> None:
    """Settle as not sent what a lost gate may have recorded as leaving."""
    result = Result(retries.Outcome("not_sent", lane_wait=rules.LANE_WAIT_BASE_SECONDS), None, "gate_lost")

    def take_back() -> None:
        for (attempt,) in db.rows(_UNBEGUN, [claim.message_id, claim.lease]):
            _settle(claim, attempt, result)

    insist(take_back)
