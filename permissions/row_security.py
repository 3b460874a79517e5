"""Roles and policies of PostgreSQL, made from the models after each migration: no table can be forgotten.

The owner of the tables migrates. What serves runs as ``settings.DATABASE_ROLE``, which owns nothing and bypasses
nothing: of each table with an organization it sees the rows of its scope. Others, entered for one transaction at a
time, see the rows of several organizations (who is a member of several) or of all (isolation.across_tenants).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, IntegrityError, InternalError, ProgrammingError, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from psycopg import errors

from permissions.isolation import Reach
from permissions.models import Organization
from permissions.postgres.scoping import ORGANIZATIONS, role_of

_TRIES = 50
_TRY_SECONDS = 0.1
# The sub-selects are worked out once for a statement, not for each row.
_RULES = {
    Reach.ONE: f"{{column}} = (SELECT current_setting('{ORGANIZATIONS}')::uuid)",
    Reach.SEVERAL: f"{{column}} = ANY ((SELECT current_setting('{ORGANIZATIONS}')::uuid[])::uuid[])",
    Reach.ALL: "true",
}
_POLICY = "CREATE POLICY {policy} ON {table} TO {role} USING (%s)"
_STANDS = """
SELECT EXISTS (SELECT 1 FROM pg_policies
  WHERE schemaname = current_schema AND tablename = %s AND policyname = %s AND roles = ARRAY[%s]::name[])
"""
_RIGHTS = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
)
_EXISTS = "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = %s)"
# From PostgreSQL 16 on a member may be one who may not become the role.
_MAY_BECOME = """
SELECT pg_has_role(%s, %s, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
"""
_HELP = "the login of DATABASE_URL can't become the roles that serve, and may not arrange it; a superuser can: "


class RoleMissing(Exception):
    """The database's roles for the application do not exist, and this login may not make them. Says what to run."""


def columns() -> Iterator[tuple[str, str]]:
    """Each table with an organization, and the column that names it."""
    for model in apps.get_models():
        if (column := column_of(model)) is not None and model._meta.managed:
            yield model._meta.db_table, column


def column_of(model: type[Model]) -> str | None:
    """The column that says whose a row is; None where rows are nobody's in particular."""
    if model is Organization:
        return "id"
    of_tenants = (f for f in model._meta.concrete_fields if f.related_model is Organization)
    return next((field.column for field in of_tenants), None)


def provide(using: str) -> None:
    """Make the roles, their rights and the policies what they should be. Needs the owner's login; repeatable."""
    for reach in Reach:
        _provide_role(using, role_of(reach))
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        for reach in Reach:
            for right in _RIGHTS:
                _run(cursor, right, role=role_of(reach))
        for table, column in columns():
            _protect(cursor, table, column)


def on_migrated(using: str, plan: object = None, **_signal: Any) -> None:
    """Receiver of post_migrate, which "flush" sends too: without a plan, and not as the owner."""
    if plan is None:
        return
    provide(using)


def _provide_role(using: str, role: str) -> None:
    """Roles belong to the server, not to one database: several installations may be at it at the same time."""
    login = connections[DEFAULT_DB_ALIAS].settings_dict["USER"]
    for _ in range(_TRIES):
        try:
            with transaction.atomic(using=using), connections[using].cursor() as cursor:
                if not _one(cursor, _EXISTS, role):
                    _run(cursor, "CREATE ROLE {role} NOLOGIN", role=role)
                if not _one(cursor, _MAY_BECOME, login, role):
                    _run(cursor, "GRANT {role} TO {login}", role=role, login=login)
        except (IntegrityError, InternalError):
            time.sleep(_TRY_SECONDS)
        except ProgrammingError as error:
            if isinstance(error.__cause__, errors.DuplicateObject):
                continue
            if isinstance(error.__cause__, errors.InsufficientPrivilege):
                raise RoleMissing(_help(using, login)) from error
            raise
        else:
            return
    raise RoleMissing(_help(using, login))


def _help(using: str, login: str) -> str:
    """All that is missing at once, so that whoever may has to be asked only once."""
    member = connections[using].ops.quote_name(login)
    statements = []
    with connections[using].cursor() as cursor:
        for role in map(role_of, Reach):
            stands = _one(cursor, _EXISTS, role)
            if not stands:
                statements.append(f"CREATE ROLE {role} NOLOGIN;")
            if not stands or not _one(cursor, _MAY_BECOME, login, role):
                statements.append(f"GRANT {role} TO {member};")
    return _HELP + " ".join(statements)


def _protect(cursor: CursorWrapper, table: str, column: str) -> None:
    if not _one(cursor, "SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", table):
        _run(cursor, "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY", table=table)
    for reach, rule in _RULES.items():
        names = {"table": table, "policy": f"tenant_{reach}", "role": role_of(reach)}
        if _one(cursor, _STANDS, table, names["policy"], names["role"]):
            continue
        _run(cursor, "DROP POLICY IF EXISTS {policy} ON {table}", **names)
        _run(cursor, _POLICY % rule, **names, column=column)


def _one(cursor: CursorWrapper, statement: str, *parameters: str) -> Any:
    cursor.execute(statement, parameters)
    return cursor.fetchone()[0]


def _run(cursor: CursorWrapper, statement: str, **names: str) -> None:
    quoted = {name: cursor.db.ops.quote_name(value) for name, value in names.items()}
    cursor.execute(statement.format(**quoted))
