"""The engine's statements, run on a connection borrowed for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import psycopg
from django.db import Error, connection
from django.db.backends.base.base import NO_DB_ALIAS

from permissions.postgres import scoping


@contextmanager
def borrowed() -> Iterator[None]:
    """Give the connection back to the pool at the end, unless a transaction holds it.

    Threads that wait on a gateway would else starve the pool: each kept its connection while it waited.
    """
    try:
        yield
    finally:
        if not connection.in_atomic_block:
            connection.close()


@contextmanager
def tried_lock(kind: int, name: str) -> Iterator[bool]:
    """Hold an advisory lock over calls of the network, which no transaction may; False where another has it.

    It stands on a connection of its own, outside of the pool: a pooled one may be given back meanwhile, and
    would keep the lock for whoever borrows it next. With the connection, at the latest, the lock ends; it is
    given back before, since a server notices a closed connection only by and by.
    """
    own = connection.copy(alias=NO_DB_ALIAS)
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, %s))", [name, kind])
            (ours,) = cursor.fetchone()
            try:
                yield bool(ours)
            finally:
                with suppress(Error):
                    cursor.execute("SELECT pg_advisory_unlock_all()")
    finally:
        own.close()


def rows(statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """Run one prepared statement and give its rows. Raises django.db's errors, and NoScope."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return scoping.rows(connection.connection, statement, parameters)


def engine(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The same for a statement that only calls the engine's functions, which need no tenant scope.

    They are addressed by keys and leases that the dispatcher deals, and run as the owner of the tables
    (``messaging.functions``): on their path a scope cost as much as their work (docs/decisions).
    """
    connection.ensure_connection()
    scoping.forget_ended(connection.connection)
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []


def row(statement: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> tuple[Any, ...]:
    """The first row of a statement that always has one."""
    return rows(statement, parameters)[0]


def database_now() -> datetime:
    """The database's clock: the one that orders everything."""
    (now,) = row("SELECT clock_timestamp()")
    assert isinstance(now, datetime)
    return now
