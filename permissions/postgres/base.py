"""The database backend (``ENGINE = "permissions.postgres"``)."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any, Self

from django.db.backends.postgresql import base
from psycopg import ClientCursor, Connection
from psycopg_pool import ConnectionPool

from permissions.postgres import scoping
from permissions.postgres.outage import Outage

if TYPE_CHECKING:
    _Cursor = ClientCursor[Any]
else:
    # Django's subclass of it, which the stubs leave out.
    _Cursor = base.Cursor


_outage = Outage()
# A connection that answered so short a while ago, and from which nothing has come since, is taken to be alive: a server
# that ends says so on its socket, which costs a look. Asking it at each loan cost as much as a short statement does.
_TRUSTED_SECONDS = 1.0
_ANSWERED = "answered_at"


def check_lately(connection: Connection[Any]) -> None:
    """Ask a pooled connection whether it is alive, unless it is known to be. Raises psycopg.OperationalError."""
    now = time.monotonic()
    if now - getattr(connection, _ANSWERED, -_TRUSTED_SECONDS) >= _TRUSTED_SECONDS or _has_word(connection):
        ConnectionPool.check_connection(connection)
        setattr(connection, _ANSWERED, now)


def _has_word(connection: Connection[Any]) -> bool:
    """Whether something lies unread on the socket: its end, or a notice."""
    look = select.poll()
    look.register(connection.fileno(), select.POLLIN)
    return bool(look.poll(0))


class ScopedCursor(_Cursor):
    """Sends the scope and the statement as one message, which is one transaction."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """As psycopg's. Raises NoScope."""
        telling = scoping.pending(self.connection)
        with scoping.noted(self.connection, query):
            if telling is None:
                super().execute(query, params, **options)
            else:
                text = query if isinstance(query, str) else query.as_string(self.connection)
                # Never prepared: a prepared statement is one statement.
                super().execute(f"{telling.literal}; {text}", params, prepare=False)
                self.nextset()
        return self

    def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        """As psycopg's. Raises NoScope."""
        with scoping.told(self.connection):
            super().executemany(query, params_seq, **options)


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own, with cursors that bring the scope along."""

    @property
    def pool(self) -> ConnectionPool | None:
        """Django's, which checks a connection at each loan where CONN_HEALTH_CHECKS is on."""
        pool: ConnectionPool | None = super().pool
        if pool is not None and pool._check is ConnectionPool.check_connection:
            pool._check = check_lately
        return pool

    def get_connection_params(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super().get_connection_params()
        return parameters | {"cursor_factory": ScopedCursor}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """From the pool, and not all threads at once while the database is away."""
        with _outage.noticed(self.pool):
            return super().get_new_connection(conn_params)

    def chunked_cursor(self) -> Any:
        """Rows in pages within a transaction; outside of one, where a scope can't stay, all at once."""
        if self.get_autocommit():
            return self.cursor()
        self.ensure_connection()
        with scoping.told(self.connection):
            return super().chunked_cursor()
