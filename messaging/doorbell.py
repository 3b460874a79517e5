"""Ringing workers. The broker is a doorbell: a ring that is lost is made up for by a sweep over the rows."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import BatchPublishError  # type: ignore[attr-defined]
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from messaging.lanes import Claim, Slice

log = logging.getLogger(__name__)

SEND = "messaging.tasks.send_message"
SEND_SLICE = "messaging.tasks.send_messages"
APPLY = "messaging.tasks.apply_events"
# Rings until an applier answers become one, of all organizations: it takes all that is there. It begins a moment later,
# since acks come one by one, and a set of them costs little more than one; a task costs more than both.
_GATHER_SECONDS = 0.1
_QUIET_MILLISECONDS = 1000
_WAITING, _RUNG = "ring:apply:waiting", "ring:apply:rung"
# One applier looks after so many organizations, one after the other.
_MOST_ANSWERED = 16


@dataclass(frozen=True, slots=True)
class _Gathering:
    """Until when (monotonic) nobody answers what this process has rung for, and whose events that is."""

    until: float = 0.0
    organizations: set[UUID] = field(default_factory=set)


_gathering = _Gathering()
# A batch that broke off is an error of no other kind: the dispatcher ended of it whenever the broker was killed.
_UNREACHABLE = (BrokerError, BatchPublishError, RedisError, OSError)


@dataclass(frozen=True, slots=True)
class Ring:
    """One task to be rung for."""

    task: str
    arguments: tuple[object, ...]
    organization_id: UUID


def ring_send(claims: Sequence[Claim]) -> bool:
    """Ring for claimed messages, in one pipeline; False where the broker can't be reached.

    A ring is worthless once its lease is over, so it expires with it.
    """
    return _ring(
        [
            Ring(SEND, (str(claim.message_id), str(claim.channel_id), claim.lease), claim.organization_id)
            for claim in claims
        ]
    )


def ring_slices(slices: Sequence[Slice]) -> bool:
    """The same for slices: one ring each."""
    rings = [
        Ring(SEND_SLICE, ([str(key) for key in one.message_ids], str(one.channel_id), one.lease), one.organization_id)
        for one in slices
    ]
    return _ring(rings)


def _ring(rings: Sequence[Ring]) -> bool:
    if not rings:
        return True
    try:
        with current_app.producer_pool.acquire(block=True) as producer, producer.batch():  # type: ignore[attr-defined]
            for ring in rings:
                current_app.send_task(
                    ring.task,
                    args=ring.arguments,
                    kwargs={"organization_id": str(ring.organization_id)},
                    queue="send",
                    expires=settings.CLAIM_LEASE_SECONDS,
                    producer=producer,
                    ignore_result=True,
                )
    except _UNREACHABLE as error:
        log.warning("the broker is away, %s claims wait for their lease: %s", len(rings), type(error).__name__)
        return False
    return True


def ring_apply(organization_id: UUID) -> None:
    """Ring for an organization's raw events; what arrives until an applier begins is taken by it too."""
    global _gathering
    now, gathering = time.monotonic(), _gathering
    if now < gathering.until and organization_id in gathering.organizations:
        # It is among those that wait, and nobody answers before then.
        return
    try:
        with _bell().pipeline(transaction=False) as pipeline:
            pipeline.sadd(_WAITING, str(organization_id))
            pipeline.set(_RUNG, 1, nx=True, px=_QUIET_MILLISECONDS)
            _added, is_first = pipeline.execute()
        if is_first:
            _gathering = _Gathering(now + _GATHER_SECONDS / 2, {organization_id})
            _ring_apply(gathers=True)
        elif now < gathering.until:
            gathering.organizations.add(organization_id)
    except _UNREACHABLE as error:
        log.warning("the broker is away, events of %s wait for the sweep: %s", organization_id, type(error).__name__)


def answered() -> list[UUID]:
    """An applier has begun: the organizations that it is to look after; whatever arrives from now on rings again.

    Where more wait than one applier takes, another one is rung for.
    """
    try:
        with _bell().pipeline(transaction=False) as pipeline:
            pipeline.delete(_RUNG)
            pipeline.spop(_WAITING, _MOST_ANSWERED)
            _deleted, found = pipeline.execute()
        if len(found) == _MOST_ANSWERED:
            _ring_apply(gathers=False)
    except _UNREACHABLE:
        log.warning("the broker is away")
        return []
    return [UUID(name.decode()) for name in found]


def _ring_apply(*, gathers: bool) -> None:
    current_app.send_task(
        APPLY, queue="inbound", countdown=_GATHER_SECONDS if gathers else None, ignore_result=True, retry=False
    )


def backlog() -> int:
    """Rings that no worker has taken yet; 0 where the broker can't tell."""
    try:
        return int(_broker().llen("send"))
    except _UNREACHABLE:
        return 0


@functools.cache
def _bell() -> redis.Redis:
    """Impatient: a webhook waits for it. Django's cache makes a client for each call, which costs as much again."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)


@functools.cache
def _broker() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2)
