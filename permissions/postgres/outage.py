"""While the database is away one thread waits for it, and the others hear so at once.

Each would else wait for as long as the pool has patience. The few threads of a web process then all stood still:
with 20 callers even readiness took 14 s to say what was missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout


class Outage:
    """What the threads of one process know of it."""

    def __init__(self) -> None:
        self._is_on = False
        self._waiter = threading.Lock()

    @contextmanager
    def noticed(self, pool: ConnectionPool | None) -> Iterator[None]:
        """Around the wait for a connection of the pool (None: a connection outside of it, which waits for itself).

        Raises psycopg.OperationalError at once while the database is away and another thread waits for it.
        """
        if pool is None:
            yield
            return
        waits_alone = self._is_on
        if waits_alone and not self._waiter.acquire(blocking=False):
            raise psycopg.OperationalError("the database is away; another thread waits for it")
        try:
            with self._judged(pool):
                yield
        finally:
            if waits_alone:
                self._waiter.release()

    @contextmanager
    def _judged(self, pool: ConnectionPool) -> Iterator[None]:
        failed = _failures(pool)
        try:
            yield
        except PoolTimeout:
            # A pool that is merely busy also times out, but then none of its own tries failed meanwhile.
            self._is_on = self._is_on or _failures(pool) > failed
            raise
        self._is_on = False


def _failures(pool: ConnectionPool) -> int:
    return pool.get_stats().get("connections_errors", 0)
