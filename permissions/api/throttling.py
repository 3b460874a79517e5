"""How many requests a caller may make in a minute, and how every answer says it."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from permissions.api.callers import Caller

log = logging.getLogger(__name__)

WINDOW_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Count:
    """Where a caller stands in the present minute; ``reset`` in seconds from now."""

    limit: int
    remaining: int
    reset: int


class CallerRate(BaseThrottle):
    """``API_REQUESTS_PER_MINUTE`` of each key, or signed-in person, by the minute of the clock; beyond it 429.

    Counted in the cache, all web processes together. Where the cache is down nobody is held up: the limit
    is against mistakes, and the rows guard what matters.
    """

    def __init__(self) -> None:
        self._now = time.time()

    def allow_request(self, request: Request, view: Any) -> bool:  # noqa: ARG002 - DRF's signature
        if not isinstance(request.auth, Caller):
            return True
        name = f"requests:{request.auth.counted_as}:{int(self._now // WINDOW_SECONDS)}"
        try:
            cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
            used = int(cache.incr(name))
        except (RedisError, ValueError):
            # ValueError: the cache was emptied between the two steps.
            log.warning("the cache is down: requests are not counted")
            return True
        limit = settings.API_REQUESTS_PER_MINUTE
        request.count = Count(limit, max(limit - used, 0), self.wait())  # type: ignore[attr-defined]
        return used <= limit

    def wait(self) -> int:
        """Seconds until the next minute begins."""
        return math.ceil(WINDOW_SECONDS - self._now % WINDOW_SECONDS)


def headers_of(request: Request) -> dict[str, str]:
    """The limit's headers; none for a request that was not counted.

    The names are those of the IETF's drafts up to 07 (``RateLimit-Limit`` and its kin), which is what clients
    read; ``RateLimit-Reset`` is in seconds, as ``Retry-After`` is.
    """
    count: Count | None = getattr(request, "count", None)
    if count is None:
        return {}
    return {
        "RateLimit-Limit": str(count.limit),
        "RateLimit-Remaining": str(count.remaining),
        "RateLimit-Reset": str(count.reset),
        "RateLimit-Policy": f"{count.limit};w={WINDOW_SECONDS}",
    }
