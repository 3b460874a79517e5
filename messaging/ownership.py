"""Whose rights the engine's functions run with: their owner's, whoever calls them."""

from __future__ import annotations

from typing import Any

from django.db import connections

from permissions.isolation import Reach
from permissions.postgres.scoping import role_of

# Those in plain SQL touch no table, and are faster inlined. A migration that replaces one makes it the caller's
# again, so this runs after each. The search path is pinned: nobody's function or table stands in for ours.
_OWN = """
DO $$
DECLARE f regprocedure; home text := current_schema();
BEGIN
  FOR f IN SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
           WHERE p.pronamespace = home::regnamespace AND p.proname LIKE 'engine\\_%' AND l.lanname = 'plpgsql' LOOP
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', f, home);
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {roles}', f);
  END LOOP;
END $$
"""


def on_migrated(using: str, plan: object = None, **_signal: Any) -> None:
    """Receiver of post_migrate, which "flush" sends too: without a plan, and not as the owner."""
    if plan is None:
        return
    # Names that settings keep to letters, digits and underscores.
    roles = ", ".join(role_of(reach) for reach in Reach)
    with connections[using].cursor() as cursor:
        cursor.execute(_OWN.format(roles=roles))
