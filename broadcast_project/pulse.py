"""Signs of life of the processes that nobody calls: worker, dispatcher and beat.

Each goes to two places: the pulse file, by which whoever started the process ends it when it hangs (see
`supervisor.pulse`), and a key of the cache, by which `/health/ready` names a part of which nobody is at work.

A worker that answers a ping proves nothing: that comes by another connection than its tasks. So each worker
rings a queue of its own over the broker, and only what its consumer receives and its threads finish counts.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis
from celery import shared_task
from celery.signals import (
    celeryd_after_setup,
    task_postrun,
    task_received,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.core.cache import cache
from kombu import Exchange, Queue
from kombu.exceptions import OperationalError as BrokerError

from broadcast_project.supervisor import pulse

RING_SECONDS = 3.0
# Silent for longer, a worker shows no sign of life any more; its pulse file has more patience.
QUIET_SECONDS = 10.0
# How long a shown sign stands.
SIGN_SECONDS = 10
_QUEUE_KEPT_SECONDS = 600
_UNREACHABLE = (BrokerError, redis.RedisError, OSError)


@dataclass(slots=True)
class _Clock:
    """Monotonic times of this process, and whether it was told to end."""

    heard_at: float = 0.0
    shown_at: float = 0.0
    ending: bool = False


_clock = _Clock()


def key(part: str) -> str:
    """The cache's key that stands while somebody of this part is at work."""
    return f"sign-of-life:{part}"


def show(part: str) -> None:
    """Say that this process does its work. Cheap enough for every turn of a loop; never fails."""
    pulse.renew()
    if time.monotonic() - _clock.shown_at >= RING_SECONDS:
        _sign(part)


def _sign(part: str) -> None:
    _clock.shown_at = time.monotonic()
    try:
        cache.set(key(part), 1, timeout=SIGN_SECONDS)
    except _UNREACHABLE:
        # Readiness names the broker then.
        return


@shared_task(name="broadcast_project.pulse.ring", ignore_result=True)
def ring() -> None:
    """Nothing to do: that it was received is the sign."""


@celeryd_after_setup.connect
def listen(sender: str, instance: Any, **_signal: Any) -> None:
    """Have the worker consume a queue of its own too."""
    # The nameless exchange needs no binding, which the broker would keep for every worker that ever was.
    instance.app.amqp.queues.select_add(Queue(_queue(sender), Exchange(""), routing_key=_queue(sender)))


@worker_ready.connect
def begin(sender: Any, **_signal: Any) -> None:
    """Ring from now on, in a thread that ends with the worker."""
    hear()
    threading.Thread(target=_ring_on, args=(_queue(sender.hostname),), name="pulse", daemon=True).start()


@task_received.connect
@task_postrun.connect
def hear(**_signal: Any) -> None:
    """The consumer took a task, or a thread came to the end of one."""
    _clock.heard_at = time.monotonic()
    pulse.renew()


@worker_shutting_down.connect
def fall_silent(**_signal: Any) -> None:
    """Ring no more: nobody would take it, and Celery would put it back for good."""
    _clock.ending = True


@worker_shutdown.connect
def clean_up(sender: Any, **_signal: Any) -> None:
    """Leave no queue behind."""
    with suppress(*_UNREACHABLE):
        _broker().delete(_queue(sender.hostname))


def _ring_on(queue: str) -> None:
    broker = _broker()
    while not _clock.ending:
        try:
            _ring(broker, queue)
        except _UNREACHABLE:
            # The silence is the broker's: no new worker would hear more.
            pulse.renew()
        if time.monotonic() - _clock.heard_at < QUIET_SECONDS:
            _sign("worker")
        time.sleep(RING_SECONDS)


def _broker() -> redis.Redis:
    return redis.Redis.from_url(settings.CELERY_BROKER_URL, socket_timeout=5, socket_connect_timeout=2)


def _ring(broker: redis.Redis, queue: str) -> None:
    if broker.llen(queue):
        return
    ring.apply_async(queue=queue, retry=False)
    # A worker that is killed leaves its last ring behind.
    broker.expire(queue, _QUEUE_KEPT_SECONDS)


def _queue(node: str) -> str:
    # Two that share a name would eat each other's rings.
    return f"pulse.{node}.{os.getpid()}"
