"""No table with an organization is without its policies, and who serves can't get around them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import ForeignKey

from permissions import row_security
from permissions.isolation import Reach, Sweep
from permissions.models import Organization
from permissions.postgres.scoping import role_of

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("permissions", "events", "audience", "messaging", "channels_waha", "broadcasts", "broadcast_project")


def rows(statement: str, *parameters: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def test_every_table_with_an_organization_has_its_policies() -> None:
    named = {
        model._meta.db_table: field.column
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.related_model is Organization
    }
    assert {"messages", "contacts", "broadcasts", "webhook_events_log", "broadcast_api_keys"} <= named.keys()
    assert dict(row_security.columns()) == {**named, "organizations": "id"}
    found = rows("SELECT tablename, policyname, roles::text[], cmd, qual FROM pg_policies")
    for table, column in {**named, "organizations": "id"}.items():
        assert rows("SELECT relrowsecurity FROM pg_class WHERE oid = %s::regclass", table) == [(True,)], table
        ours = {str(name): (roles, command, str(rule)) for t, name, roles, command, rule in found if t == table}
        assert {name: policy[:2] for name, policy in ours.items()} == {
            f"tenant_{reach}": ([role_of(reach)], "ALL") for reach in Reach
        }, table
        assert ours["tenant_one"][2].startswith(f"({column} = ( SELECT")
        assert ours["tenant_several"][2].startswith(f"({column} = ANY (( SELECT")
        assert ours["tenant_sweep"][2] == "true"


def test_who_serves_owns_nothing_and_bypasses_nothing() -> None:
    for role in map(role_of, Reach):
        found = rows(
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin FROM pg_roles WHERE rolname = %s",
            role,
        )
        assert found == [(False,) * 5]
        assert rows("SELECT 1 FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = %s", role) == []
    with connection.cursor() as cursor, pytest.raises(Exception, match="must be owner"):
        cursor.execute("ALTER TABLE teams DISABLE ROW LEVEL SECURITY")


def test_the_engines_functions_have_their_owners_rights_and_nobody_elses_path() -> None:
    found = rows(
        "SELECT p.proname, p.prosecdef, p.proconfig, has_function_privilege('public', p.oid, 'EXECUTE')"
        " FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
        r" WHERE p.proname LIKE 'engine\_%%' AND l.lanname = 'plpgsql'"
    )
    assert len(found) >= 8
    for name, as_owner, settings, by_anybody in found:
        assert as_owner, name
        assert "search_path=public, pg_temp" in list(settings), name  # type: ignore[call-overload]
        assert not by_anybody, name


def test_who_looks_across_tenants_is_known() -> None:
    """A new place is a decision: it is added here, with a purpose of its own in ``isolation.Sweep``."""
    places = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"across_tenants\(|Sweep\.[A-Z]", path.read_text())
    }
    assert places == {
        "permissions/isolation.py",
        # Commands of whoever runs the installation, the dispatcher among them, and beat.
        "permissions/management/base.py",
        "broadcast_project/management/commands/run_dispatcher.py",
        "permissions/tasks.py",
        # Whose key, whose organizations, whose session: what is asked before the tenant is known.
        "permissions/selectors.py",
        "permissions/admin_base.py",
        "channels_waha/selectors.py",
        # The super-admin's requests.
        "permissions/middleware.py",
    }
    assert {sweep.name for sweep in Sweep} == {
        "API_KEY",
        "BEAT",
        "COMMAND",
        "DISPATCHER",
        "SIGN_IN",
        "SUPER_ADMIN",
        "WEBHOOK",
    }
