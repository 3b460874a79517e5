"""How a scope reaches the database: as settings that end with the transaction.

They travel with the statement that needs them, in the same message, so that a scope costs no round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, LiteralString

from django.conf import settings
from psycopg import ClientCursor, Connection, Cursor, errors
from psycopg.pq import TransactionStatus

from permissions import isolation
from permissions.isolation import NOWHERE, NoScope, Reach, Scope

ORGANIZATIONS = "broadcast.organizations"
_APPLIED = "tenant_scope"
_NAMED: LiteralString = f"SELECT set_config('{ORGANIZATIONS}', %s, true)"
_BOTH: LiteralString = f"SELECT set_config('role', %s, true), set_config('{ORGANIZATIONS}', %s, true)"
# What the database says where a policy asks for a scope and there is none.
_UNSCOPED = (errors.UndefinedObject, errors.InvalidTextRepresentation)


def role_of(reach: Reach) -> str:
    """What serves is this role between transactions (ONE); a login becomes the others for one at a time."""
    role: str = settings.DATABASE_ROLE
    return role if reach is Reach.ONE else f"{role}_{reach}"


@dataclass(frozen=True, slots=True)
class Telling:
    """What the database must be told before a statement: a query of its own, with and without parameters."""

    query: LiteralString
    values: tuple[str, ...]
    literal: str


def pending(connection: Connection[Any]) -> Telling | None:
    """What brings the scope to the database; None where it is there, or none is needed."""
    scope = isolation.current()
    status = connection.info.transaction_status
    if status == TransactionStatus.IDLE:
        return None if scope == NOWHERE else _from_nowhere(scope)
    if status != TransactionStatus.INTRANS or scope == getattr(connection, _APPLIED, None):
        # In an aborted transaction nothing can be told, and nothing is seen.
        return None
    return _from_anywhere(scope)


@lru_cache(maxsize=1024)
def _from_nowhere(scope: Scope) -> Telling:
    """Between transactions the role is that of ONE, and no organization is named: often one word is enough."""
    if scope.reach is Reach.ONE:
        return _telling(_NAMED, scope.organizations)
    return _from_anywhere(scope)


@lru_cache(maxsize=1024)
def _from_anywhere(scope: Scope) -> Telling:
    return _telling(_BOTH, role_of(scope.reach), scope.organizations)


def _telling(query: LiteralString, *values: str) -> Telling:
    # Roles and ids: neither holds a quote, by its form.
    return Telling(query, values, query % tuple(f"'{value}'" for value in values))


@contextmanager
def noted(connection: Connection[Any], query: object = "") -> Iterator[None]:
    """Remember what the transaction has been told; ``query``: a statement that may take it back."""
    scope = isolation.current()
    setattr(connection, _APPLIED, None)
    try:
        yield
    except _UNSCOPED as error:
        if scope == NOWHERE:
            raise NoScope(NoScope.__doc__) from error
        raise
    # A transaction that has ended takes along what was set in it, and so does a savepoint that is rolled back.
    goes_on = connection.info.transaction_status == TransactionStatus.INTRANS
    if goes_on and not (isinstance(query, str) and query.startswith("ROLLBACK")):
        setattr(connection, _APPLIED, scope)


@contextmanager
def told(connection: Connection[Any]) -> Iterator[None]:
    """A transaction under the scope, for statements that can't carry it themselves."""
    is_idle = connection.info.transaction_status == TransactionStatus.IDLE
    forget_ended(connection)
    with connection.transaction() if is_idle and connection.autocommit else nullcontext():
        if telling := pending(connection):
            with noted(connection), ClientCursor(connection) as cursor:
                cursor.execute(telling.literal, prepare=False)
        with noted(connection):
            yield


def forget_ended(connection: Connection[Any]) -> None:
    """Called by whoever may begin a transaction without telling: what is remembered is of one before it."""
    if connection.info.transaction_status == TransactionStatus.IDLE:
        setattr(connection, _APPLIED, None)


def rows(connection: Connection[Any], statement: Any, parameters: Any) -> list[tuple[Any, ...]]:
    """Run one prepared statement under the scope, in one round trip, and give its rows."""
    telling = pending(connection)
    with noted(connection), Cursor(connection) as cursor:
        if telling is not None:
            # What a pipeline sends until it is synchronised is one transaction.
            with connection.pipeline(), Cursor(connection) as teller:
                teller.execute(telling.query, telling.values, prepare=True)
                cursor.execute(statement, parameters, prepare=True)
        else:
            cursor.execute(statement, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []
