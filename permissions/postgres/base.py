"""The database backend (``ENGINE = "permissions.postgres"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.backends.postgresql import base
from psycopg import ClientCursor

from permissions.postgres import scoping
from permissions.postgres.outage import Outage

if TYPE_CHECKING:
    _Cursor = ClientCursor[Any]
else:
    # Django's subclass of it, which the stubs leave out.
    _Cursor = base.Cursor


_outage = Outage()


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
