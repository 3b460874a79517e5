"""Floods of bad keys: refused by address, before they cost a query.

A key in use stays usable from an address that is flooding: an office, or a proxy, is one address for many.
"""

from __future__ import annotations

import logging
import math
import time

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from permissions import keys

log = logging.getLogger(__name__)

_WINDOW_SECONDS = 60
# A key that was used in the last days is looked up even in a flood.
_KNOWN_SECONDS = 7 * 24 * 3600


def refuse_beyond_limit(request: Request, token: str) -> None:
    """Raise Throttled (429) where the address gave too many bad keys this minute and this one is not known."""
    public_id = keys.public_id_of(token)
    names = [_counter(request), *([_known(public_id)] if public_id else [])]
    try:
        found = cache.get_many(names)
    except RedisError:
        # Without a cache the database answers alone.
        return
    if found.get(names[0], 0) >= settings.API_BAD_KEYS_PER_MINUTE and len(found) < 2:
        raise Throttled(wait=math.ceil(_WINDOW_SECONDS - time.time() % _WINDOW_SECONDS))


def count_bad_key(request: Request) -> None:
    """One more bad key of this address."""
    name = _counter(request)
    try:
        cache.add(name, 0, timeout=2 * _WINDOW_SECONDS)
        cache.incr(name)
    except (RedisError, ValueError):
        # ValueError: the cache was emptied between the two steps.
        log.warning("the cache is down: bad keys are not counted")


def remember_good_key(public_id: str) -> None:
    """The key is in use."""
    try:
        cache.set(_known(public_id), 1, timeout=_KNOWN_SECONDS)
    except RedisError:
        log.warning("the cache is down: a key in use was not noted")


def address_of(request: Request) -> str:
    """The caller's address: the connection's, or behind our own proxy the one that the proxy saw."""
    direct = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.BEHIND_PROXY:
        return direct
    # Only the last entry is the proxy's; those before it are whatever the caller wrote.
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64] or direct


def _counter(request: Request) -> str:
    return f"bad-keys:{address_of(request)}:{int(time.time() // _WINDOW_SECONDS)}"


def _known(public_id: str) -> str:
    return f"key-in-use:{public_id}"
