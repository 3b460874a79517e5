"""A connection of the tables' owner, beside the product's: for VACUUM, and for COPY, which row security bars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

_CHUNK = 1 << 18


@contextmanager
def connected() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Autocommit. The login that owns the tables, under no role and no policy, else as the product connects."""
    given = connection.get_connection_params()
    options = given["options"].replace(f"-c role={settings.DATABASE_ROLE}", "")
    names = ("dbname", "user", "password", "host", "port")
    own = {name: given[name] for name in names if given.get(name)}
    with psycopg.connect(**own, options=options, autocommit=True) as owner:
        yield owner


def copied_out(owner: psycopg.Connection[Any], query: str, parameters: list[Any]) -> bytes:
    """The rows of a query as COPY writes them."""
    with owner.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT", parameters) as copy:
        return b"".join(bytes(row) for row in copy)


def copy_in(owner: psycopg.Connection[Any], table: str, columns: list[str], data: bytes) -> None:
    """Into a table as it is, every index and constraint of it included."""
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with owner.cursor() as cursor, cursor.copy(statement) as copy:
        for start in range(0, len(data), _CHUNK):
            copy.write(data[start : start + _CHUNK])
