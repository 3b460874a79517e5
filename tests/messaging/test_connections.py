"""Connections are borrowed for a statement: few serve many threads, and a restart of the database fails no send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from psycopg_pool import ConnectionPool

from messaging import db, delivery, lanes
from messaging.adapters import Outgoing
from messaging.models import Message
from permissions import isolation
from permissions.isolation import Sweep
from permissions.postgres.base import check_lately
from tests.messaging.conftest import Lab, ScriptedAdapter

pytestmark = pytest.mark.django_db(transaction=True)

THREADS, POOL = 32, 4
PATIENCE = 30


@contextmanager
def pool(**options: Any) -> Iterator[None]:
    """Have every thread of this process borrow from a pool of these options."""
    ours = connections["default"]
    assert isinstance(ours, DatabaseWrapper)
    # Threads make their connections from these same settings.
    before = ours.settings_dict["OPTIONS"]["pool"]
    _anew(ours, {**before, **options})
    try:
        yield
    finally:
        _anew(ours, before)


def _anew(ours: DatabaseWrapper, options: dict[str, Any]) -> None:
    ours.close()
    ours.close_pool()
    ours.settings_dict["OPTIONS"]["pool"] = options


def at_once(number: int, work: Callable[[Any], Any], *each: Any) -> list[Any]:
    """Run in threads of their own, as a worker does."""

    def apart(*given: Any) -> Any:
        try:
            with isolation.across_tenants(Sweep.COMMAND, "test"):
                return work(*given)
        finally:
            connection.close()

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(apart, *each))


def claims(make_lab: Callable[..., Lab], number: int) -> list[lanes.Claim]:
    """One claimed message for each of so many numbers."""
    for place in range(number):
        make_lab(f"loja-{place}").queue()
    return lanes.claim(limit=number)


def test_few_connections_serve_many_threads_that_wait_on_a_gateway(
    make_lab: Callable[..., Lab], adapter: ScriptedAdapter
) -> None:
    found = claims(make_lab, THREADS)
    assert len(found) == THREADS
    all_waiting = Barrier(THREADS)

    def slow_gateway(outgoing: Outgoing) -> str | None:
        # It answers only once all threads wait for it: were a connection held meanwhile, only POOL would come here.
        all_waiting.wait(PATIENCE)
        return outgoing.provider_id

    adapter.on_send = slow_gateway
    with pool(max_size=POOL):
        assert at_once(THREADS, delivery.deliver, found) == ["sent"] * THREADS
        assert backends() <= POOL
    assert Message.unscoped.filter(status="sent", attempt=1).count() == THREADS


def test_a_connection_that_has_just_answered_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[psycopg.Connection[Any]] = []

    def ask(borrowed: psycopg.Connection[Any]) -> None:
        asked.append(borrowed)

    now = time.monotonic()
    monkeypatch.setattr(ConnectionPool, "check_connection", ask)
    with look() as own:
        for later in (0.0, 0.5, 0.9, 1.1):
            monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
            check_lately(own)
        assert len(asked) == 2


def test_a_restart_of_the_database_fails_no_send(make_lab: Callable[..., Lab], adapter: ScriptedAdapter) -> None:
    found = claims(make_lab, 2 * POOL)
    with pool(max_size=POOL):
        together = Barrier(POOL)
        pids = at_once(POOL, lambda _: (db.row("SELECT pg_backend_pid()"), together.wait(PATIENCE))[0], range(POOL))
        assert len(set(pids)) == POOL
        cut_off()
        assert at_once(POOL, delivery.deliver, found) == ["sent"] * len(found)
    assert len(adapter.sent) == len(found)
    assert Message.unscoped.filter(status="sent", attempt=1).count() == len(found)


def test_connections_cut_between_post_and_row_cost_no_second_message(
    make_lab: Callable[..., Lab], adapter: ScriptedAdapter
) -> None:
    """B136: sent, and the save fails; the settle is repeated, not the message."""
    (claim,) = claims(make_lab, 1)

    def cut_off_meanwhile(outgoing: Outgoing) -> str | None:
        cut_off()
        return outgoing.provider_id

    adapter.on_send = cut_off_meanwhile
    with pool(max_size=POOL):
        assert at_once(1, delivery.deliver, [claim]) == ["sent"]
    assert len(adapter.sent) == 1
    assert Message.unscoped.filter(status="sent", attempt=1).count() == 1


_OTHERS = """
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


def backends() -> int:
    """How many hold a connection to the test's database, but for the one that asks."""
    with look() as own:
        return int(own.execute("SELECT count(*) " + _OTHERS).fetchall()[0][0])


def cut_off() -> None:
    """What a restart does to every open connection."""
    with look() as own:
        own.execute("SELECT pg_terminate_backend(pid, 5000) " + _OTHERS)
    assert backends() == 0


def look() -> psycopg.Connection[Any]:
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    own = psycopg.connect(**{**parameters, "autocommit": True})
    # As the login: the role that serves may end nobody's connection.
    own.execute("SET ROLE none")
    return own
