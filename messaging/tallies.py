"""How many sends came to which end, counted over all workers for the metrics."""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from collections.abc import Mapping

import redis
from django.conf import settings
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

_KEY = "metrics:sends"
_FLUSH_SECONDS = 2.0
_lock = threading.Lock()
_pending: Counter[str] = Counter()


def count(outcome: str) -> None:
    """One attempt came to this end (messaging.retries)."""
    count_all({outcome: 1})


def count_all(outcomes: Mapping[str, int]) -> None:
    """The same for several; told to the store within seconds, many at once."""
    with _lock:
        is_first = not _pending
        _pending.update(outcomes)
    if is_first:
        timer = threading.Timer(_FLUSH_SECONDS, flush)
        timer.daemon = True
        timer.start()


def flush() -> None:
    """Bring what was counted to the store. What it does not take is lost: figures, not facts."""
    with _lock:
        counted = dict(_pending)
        _pending.clear()
    try:
        pipeline = _store().pipeline(transaction=False)
        for outcome, number in counted.items():
            pipeline.hincrby(_KEY, outcome, number)
        pipeline.execute()
    except RedisError as error:
        log.warning("sends were not counted: %s", type(error).__name__)


def totals() -> dict[str, int]:
    """Attempts by outcome since the store was last empty; nothing where it can't be asked."""
    try:
        found = _store().hgetall(_KEY)
    except RedisError:
        return {}
    return {str(name): int(number) for name, number in found.items()}


@functools.cache
def _store() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, decode_responses=True, socket_timeout=1, socket_connect_timeout=1)
