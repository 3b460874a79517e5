"""How a scope reaches the database: as settings that end with the transaction.

They travel with the statement that needs them, in the same message, so that a scope costs no round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.conf import settings
from psycopg import ClientCursor, Connection, Cursor, errors, sql
from psycopg.pq import TransactionStatus

from permissions import isolation
from permissions.isolation import NOWHERE, NoScope, Scope

ORGANIZATIONS = "broadcast.organizations"
_APPLIED = "tenant_scope"
# In an aborted transaction nothing can be told, and nothing is seen.
_OPEN = (TransactionStatus.IDLE, TransactionStatus.INTRANS)
# What the database says where a policy asks for a scope and there is none.
_UNSCOPED = (errors.UndefinedObject, errors.InvalidTextRepresentation)


def sweep_role() -> str:
    """The role that sees all tenants; a login only becomes it for a transaction."""
    return f"{settings.DATABASE_ROLE}_sweep"


def pending(connection: Connection[Any]) -> str:
    """The statement that brings the scope to the database; empty where it is there, or none is needed."""
    scope = isolation.current()
    if connection.info.transaction_status not in _OPEN or scope == _applied(connection):
        return ""
    role = sweep_role() if scope.is_across else settings.DATABASE_ROLE
    values = sql.SQL("SELECT set_config('role', {}, true), set_config({}, {}, true)")
    return values.format(role, ORGANIZATIONS, scope.organizations).as_string(connection)


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
    with connection.transaction() if is_idle and connection.autocommit else nullcontext():
        if is_idle:
            # What is remembered is of a transaction before this one.
            setattr(connection, _APPLIED, None)
        if statement := pending(connection):
            with noted(connection), ClientCursor(connection) as cursor:
                cursor.execute(statement, prepare=False)
        with noted(connection):
            yield


def rows(connection: Connection[Any], statement: Any, parameters: Any) -> list[tuple[Any, ...]]:
    """Run one prepared statement under the scope, in one round trip, and give its rows."""
    scope = pending(connection)
    with noted(connection), Cursor(connection) as cursor:
        if scope:
            # What a pipeline sends until it is synchronised is one transaction.
            with connection.pipeline(), Cursor(connection) as teller:
                teller.execute(scope, prepare=True)
                cursor.execute(statement, parameters, prepare=True)
        else:
            cursor.execute(statement, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []


def _applied(connection: Connection[Any]) -> Scope | None:
    """What the connection's transaction is under; None where that is not known."""
    if connection.info.transaction_status == TransactionStatus.IDLE:
        # Between transactions nothing is set: the role is the login's, and no organization is named.
        return NOWHERE
    applied: Scope | None = getattr(connection, _APPLIED, None)
    return applied
