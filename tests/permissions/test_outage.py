"""While the database is away few wait for it, and whoever asks is told to try again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError, connection
from django.test import Client
from psycopg_pool import ConnectionPool, PoolTimeout

from permissions.postgres.outage import Outage
from tests.waiting import until

PATIENCE = 1.5


@pytest.fixture
def away(tmp_path: Path) -> Iterator[ConnectionPool]:
    """A pool whose database is nowhere."""
    parameters = {"host": str(tmp_path), "dbname": "none", "user": "nobody"}
    yield from _opened(ConnectionPool(kwargs=parameters, open=False, timeout=PATIENCE, min_size=1, reconnect_timeout=1))


@pytest.fixture
def back() -> Iterator[ConnectionPool]:
    """A pool of one connection to the tests' database."""
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    yield from _opened(ConnectionPool(kwargs=parameters, open=False, timeout=0.3, min_size=1, max_size=1))


def _opened(pool: ConnectionPool) -> Iterator[ConnectionPool]:
    with pool:
        yield pool


def borrow(outage: Outage, pool: ConnectionPool) -> str:
    """What came of it, in a word."""
    try:
        with outage.noticed(pool):
            pool.putconn(pool.getconn())
    except PoolTimeout:
        return "waited"
    except psycopg.OperationalError:
        return "was told"
    return "had one"


def test_one_thread_waits_and_the_others_are_told_at_once(away: ConnectionPool) -> None:
    outage = Outage()
    # Nobody knows yet that it is away.
    assert borrow(outage, away) == "waited"
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(borrow, outage, away)
        assert until(lambda: outage._waiter.locked())
        began = time.monotonic()
        assert [borrow(outage, away) for _ in range(20)] == ["was told"] * 20
        assert time.monotonic() - began < PATIENCE
        assert waiting.result() == "waited"
    # When it has given up, the next one tries.
    assert borrow(outage, away) == "waited"


def test_a_database_that_returned_serves_all_again(away: ConnectionPool, back: ConnectionPool) -> None:
    outage = Outage()
    assert borrow(outage, away) == "waited"
    assert borrow(outage, back) == "had one"
    assert not outage._is_on


def test_a_busy_pool_is_no_outage(back: ConnectionPool) -> None:
    outage = Outage()
    with back.connection():
        assert borrow(outage, back) == "waited"
        assert not outage._is_on
    assert borrow(outage, back) == "had one"


@pytest.fixture
def without_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A caller with a cookie, whose session can't be read."""

    def lost(_self: SessionStore) -> Any:
        raise OperationalError("couldn't get a connection after 3.00 sec")

    monkeypatch.setattr(SessionStore, "_get_session_from_db", lost)
    client.cookies["sessionid"] = "x" * 32
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("/admin/", lambda answer: "O banco de dados não responde" in answer.content.decode()),
        ("/api/v1/broadcasts", lambda answer: answer.json()["errors"][0]["code"] == "temporarily_unavailable"),
    ],
)
def test_whoever_asks_meanwhile_may_try_again(
    without_database: Client, path: str, reads: Callable[[Any], bool]
) -> None:
    answer = without_database.get(path, headers={"Accept-Language": "pt-br"})
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert reads(answer)
