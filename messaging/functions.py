"""The engine's functions: one file each in ``messaging/sql``, made anew after each migration, whoever calls them.

Each is one round trip; inside it every statement has a snapshot of its own (VOLATILE, READ COMMITTED): what commits
while a lock is waited for is seen. SQL compares figures with the clock; no rule is judged there that Python did not
turn into a figure (docs/decisions).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from permissions.isolation import Reach
from permissions.postgres.scoping import role_of

_HOME = Path(__file__).parent / "sql"
_TABLES = "SELECT to_regclass('lanes') IS NOT NULL"
# All of them: one whose arguments or whose name a newer version changed is not to stand beside its successor.
_DROP = """
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT oid::regprocedure FROM pg_proc
           WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'engine\\_%' LOOP
    EXECUTE format('DROP FUNCTION %s', f);
  END LOOP;
END $$
"""
# They run with their owner's rights. Those in plain SQL touch no table, and are faster inlined. The search path is
# pinned: nobody's function or table stands in for ours. They go by keys and short lists of them, for which one plan is
# as good as another: made anew for each list, it cost more than what it planned. Each says which version of them all
# it belongs to.
_OWN = """
DO $$
DECLARE f regprocedure; is_inlined boolean; home text := current_schema();
BEGIN
  FOR f, is_inlined IN
      SELECT p.oid::regprocedure, l.lanname = 'sql' FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
      WHERE p.pronamespace = home::regnamespace AND p.proname LIKE 'engine\\_%' LOOP
    EXECUTE format('COMMENT ON FUNCTION %s IS ''{version}''', f);
    CONTINUE WHEN is_inlined;
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', f, home);
    EXECUTE format('ALTER FUNCTION %s SET plan_cache_mode = force_generic_plan', f);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {roles}', f);
  END LOOP;
END $$
"""
_VERSIONS = """
SELECT DISTINCT obj_description(oid, 'pg_proc') FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'engine\\_%'
"""


def on_migrated(using: str, plan: object = None, **_signal: Any) -> None:
    """Receiver of post_migrate, which "flush" sends too: without a plan, and not as the owner."""
    if plan is None:
        return
    # Names that settings keep to letters, digits and underscores.
    roles = ", ".join(role_of(reach) for reach in Reach)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(_DROP)
        cursor.execute(_TABLES)
        (are_there,) = cursor.fetchone()
        if not are_there:
            # Migrated back to before the engine.
            return
        for statement in _statements():
            cursor.execute(statement)
        cursor.execute(_OWN.format(roles=roles, version=_version()))


def are_current(connection: BaseDatabaseWrapper) -> bool:
    """Whether the database has this version's functions, and no other."""
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS)
        return bool(cursor.fetchall() == [(_version(),)])


@lru_cache(maxsize=1)
def _version() -> str:
    return hashlib.sha256("".join(_statements()).encode()).hexdigest()


def _statements() -> list[str]:
    return [path.read_text() for path in sorted(_HOME.glob("*.sql"))]
