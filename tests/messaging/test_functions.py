"""The engine's functions in the database are this version's, after a migration and until the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from broadcast_project import health
from messaging import functions

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def owner() -> Iterator[None]:
    """Whoever migrates."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE none")
        yield
        cursor.execute("RESET ROLE")


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def names() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT proname FROM pg_proc WHERE proname LIKE 'engine\\_%'")
        return {name for (name,) in cursor.fetchall()}


def test_what_an_older_version_left_is_replaced() -> None:
    run("CREATE FUNCTION engine_forgotten() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    run("CREATE OR REPLACE FUNCTION engine_deck() RETURNS double precision[] LANGUAGE sql AS 'SELECT ARRAY[0.5]'")
    assert not functions.are_current(connection)

    functions.on_migrated("default", plan=[])

    assert functions.are_current(connection)
    assert "engine_forgotten" not in names()
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(engine_deck())")
        assert cursor.fetchone() == (10,)


def test_they_run_as_their_owner_for_the_roles_that_serve_alone() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, prosecdef, has_function_privilege('public', p.oid, 'EXECUTE')"
            " FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
            " WHERE proname LIKE 'engine\\_%' AND lanname = 'plpgsql'"
        )
        found = cursor.fetchall()
    assert len(found) >= 10
    assert all(as_owner and not by_anybody for _name, as_owner, by_anybody in found)


def test_an_upgrade_without_its_migration_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_migrations", health._Migrations())
    monkeypatch.setattr(functions, "_version", lambda: "of the next version")
    with pytest.raises(health.Failing, match="run migrate"):
        health.check_migrations(connection)


def test_none_is_planned_anew_for_what_it_is_given() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, proconfig FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
            " WHERE proname LIKE 'engine\\_%' AND lanname = 'plpgsql'"
        )
        settings = dict(cursor.fetchall())
    assert all("plan_cache_mode=force_generic_plan" in given for given in settings.values())
    assert "enable_seqscan=off" in settings["engine_claim"]
