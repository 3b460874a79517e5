"""A slice from its reservation to what became of each message: gated in one call, sent side by side, settled together.

For lanes with a rate (``ChannelAdapter.rate_of``). Every promise of ``delivery`` holds for each message: that it is
leaving is committed before its first byte, the row and its lease decide, nothing ambiguous is repeated.
"""

from __future__ import annotations

import functools
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from messaging import adapters, db, delivery, lanes, tallies
from messaging.adapters import Outgoing
from messaging.delivery import Result, Work
from messaging.faults import Point, reach
from messaging.gate import Answer, Verdict
from messaging.lanes import Slice

log = logging.getLogger(__name__)

# What is done meanwhile is settled together, so often.
_SETTLE_EVERY_SECONDS = 0.25
_AT_ONCE_PER_THREAD = 2
_MOST_AHEAD_SECONDS = 1.0
_LOAD = "SELECT message_id, kind, type, address, body, faults, failures, known_id FROM engine_load_slice(%s, %s, %s)"
_GATE = "SELECT message_id, verdict, code, attempt, starts_in FROM engine_gate_slice(%s, %s, %s, %s, %s, %s, %s)"
_SETTLE = "SELECT engine_settle_slice(%s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message past its gate. ``starts_at``: monotonic."""

    work: Work
    answer: Answer
    starts_at: float


@dataclass(frozen=True, slots=True)
class _Done:
    turn: _Turn
    result: Result


def deliver(slice_: Slice) -> Counter[str]:
    """Send what of a slice may leave; how many by the word of what happened.

    Safe to call twice, late, or for a slice that is gone: the rows and their leases decide.
    """
    words: Counter[str] = Counter()
    with db.borrowed():
        loaded = _load(slice_)
    waiting = deque(work for work in loaded if _is_ready(work, words))
    pool, under_way = _pool(os.getpid()), dict[Future[Result], _Turn]()
    most = _AT_ONCE_PER_THREAD * settings.SLICE_THREADS
    while waiting or under_way:
        # Gated a little ahead of the threads, and as soon as half of that is done: what waits for a thread past its
        # gate for two seconds is not sent.
        if waiting and len(under_way) <= most // 2:
            works = [waiting.popleft() for _ in range(min(most - len(under_way), len(waiting)))]
            turns = _gated(slice_, works, words)
            under_way |= {pool.submit(copy_context().run, _send, turn): turn for turn in turns}
        enough = most // 2 if waiting else 0
        _settle(slice_, _collected(under_way, enough), words)
    return words


def _load(slice_: Slice) -> list[Work]:
    found = db.engine(_LOAD, [list(slice_.message_ids), slice_.lease, slice_.organization_id])
    works = []
    for message_id, kind, type_, address, text, faults, failures, known_id in found:
        adapter = adapters.for_kind(kind)
        ours = adapter.new_provider_id(slice_.channel_id)
        outgoing = Outgoing(
            message_id=message_id,
            channel_id=slice_.channel_id,
            type=type_,
            address=address,
            text=text,
            attempt=0,
            provider_id=ours and (known_id or ours),
        )
        works.append(Work(slice_.claim(message_id), adapter, outgoing, faults, failures))
    return works


def _is_ready(work: Work, words: Counter[str]) -> bool:
    """What is slow comes before the gate."""
    if not work.adapter.is_slow_to_prepare(work.outgoing):
        return True
    refusal = delivery.prepare(work)
    if refusal is not None:
        words[refusal] += 1
    return refusal is None


def _gated(slice_: Slice, works: Sequence[Work], words: Counter[str]) -> list[_Turn]:
    """The turns of those that may leave; nothing where the gate's answer was lost, whatever it recorded."""
    try:
        turns = _pass_gate(slice_, works, words)
    except delivery.LOST as error:
        log.warning("the gate's answer for a slice of %s was lost: %s", slice_.channel_id, type(error).__name__)
        for work in works:
            delivery.take_back(work.claim)
        words["gate_lost"] += len(works)
        return []
    if turns:
        reach(Point.AFTER_GATE_COMMIT)
    return turns


def _pass_gate(slice_: Slice, works: Sequence[Work], words: Counter[str]) -> list[_Turn]:
    by_id = {work.claim.message_id: work for work in works}
    asked_at, answers = _ask(slice_, works, figures_fresh=False)
    if any(verdict == Verdict.FIGURES_STALE for _id, verdict, *_rest in answers):
        with db.borrowed():
            lanes.refresh_figures(slice_.channel_id)
        asked_at, answers = _ask(slice_, works, figures_fresh=True)
    turns = []
    for message_id, verdict, code, attempt, starts_in in answers:
        if verdict != Verdict.GO:
            words[verdict] += 1
            continue
        answer = Answer(Verdict.GO, code, None, attempt, asked_at)
        turns.append(_Turn(by_id[message_id], answer, asked_at + starts_in))
    return turns


def _ask(
    slice_: Slice, works: Sequence[Work], *, figures_fresh: bool
) -> tuple[float, list[tuple[UUID, str, str, int, float]]]:
    asked_at = time.monotonic()
    with db.borrowed():
        answers = db.engine(
            _GATE,
            [
                [work.claim.message_id for work in works],
                slice_.channel_id,
                slice_.lease,
                [work.outgoing.provider_id for work in works],
                settings.SEND_DEADLINE_SECONDS,
                _MOST_AHEAD_SECONDS,
                figures_fresh,
            ],
        )
    return asked_at, answers


def _collected(under_way: dict[Future[Result], _Turn], enough: int) -> list[_Done]:
    """Take out what is done, after a while or as soon as no more than ``enough`` are left."""
    give_up = time.monotonic() + _SETTLE_EVERY_SECONDS
    collected: list[_Done] = []
    while len(under_way) > enough and (now := time.monotonic()) < give_up:
        ready, _ = wait(under_way, timeout=give_up - now, return_when=FIRST_COMPLETED)
        collected += [_Done(under_way.pop(future), future.result()) for future in ready]
    return collected


def _send(turn: _Turn) -> Result:
    if (early := turn.starts_at - time.monotonic()) > 0:
        time.sleep(early)
    return delivery.send(turn.work, turn.answer)


def _settle(slice_: Slice, done: Sequence[_Done], words: Counter[str]) -> None:
    if not done:
        return
    reach(Point.BEFORE_SETTLE_COMMIT)
    accepted = [one for one in done if one.result.outcome.result == delivery.SENT.result]

    def settle() -> None:
        db.engine(
            _SETTLE,
            [
                slice_.channel_id,
                [one.turn.work.claim.message_id for one in accepted],
                [one.turn.answer.attempt for one in accepted],
                [one.result.provider_id for one in accepted],
            ],
        )

    if accepted and not delivery.insist(settle):
        log.error("%s messages of a slice were not settled", len(accepted))
    for one in done:
        if one.result.outcome.result != delivery.SENT.result:
            work = one.turn.work
            delivery.settle(work.claim, one.turn.answer.attempt, one.result)
            if delivery.opens_breaker(work, one.result):
                delivery.tell_held(work.claim)
    reach(Point.AFTER_SETTLE)
    outcomes = Counter(one.result.outcome.result for one in done)
    words.update(outcomes)
    tallies.count_all(outcomes)


@functools.cache
def _pool(_process: int) -> ThreadPoolExecutor:
    """One for a process, whose sessions keep their connections; a fork makes its own."""
    return ThreadPoolExecutor(settings.SLICE_THREADS, thread_name_prefix="slice")
