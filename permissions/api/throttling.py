"""How many requests a key may make in a minute."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from permissions.models import ApiKey

log = logging.getLogger(__name__)

_WINDOW_SECONDS = 60


class KeyRate(BaseThrottle):
    """``API_REQUESTS_PER_MINUTE`` of each key, counted by the minute of the clock; beyond it 429.

    Counted in the cache, all web processes together. Where the cache is down nobody is held up: the limit
    is against mistakes, and the rows guard what matters.
    """

    def __init__(self) -> None:
        self._now = time.time()

    def allow_request(self, request: Request, view: Any) -> bool:  # noqa: ARG002 - DRF's signature
        if not isinstance(request.auth, ApiKey):
            return True
        name = f"requests:{request.auth.public_id}:{int(self._now // _WINDOW_SECONDS)}"
        try:
            cache.add(name, 0, timeout=2 * _WINDOW_SECONDS)
            return bool(cache.incr(name) <= settings.API_REQUESTS_PER_MINUTE)
        except (RedisError, ValueError):
            # ValueError: the cache was emptied between the two steps.
            log.warning("the cache is down: requests are not counted")
            return True

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return math.ceil(_WINDOW_SECONDS - self._now % _WINDOW_SECONDS)
