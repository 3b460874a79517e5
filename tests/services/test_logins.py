"""One login that migrates and serves, or two; and what is said where the roles can't be made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from permissions.ids import new_id
from permissions.isolation import Reach
from permissions.postgres.scoping import role_of

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "de-teste"


class Place:
    """A database of its own on the tests' server, and logins that end with it."""

    def __init__(self) -> None:
        self.mark = new_id().hex[-12:]
        self.role = f"app_{self.mark}"
        self.database = f"logins_{self.mark}"

    def url(self, login: str = "") -> str:
        parts = urlsplit(os.environ["DATABASE_URL"])
        _user, _at, host = parts.netloc.rpartition("@")
        named = f"{login}:{PASSWORD}@{host}" if login else parts.netloc
        return parts._replace(netloc=named, path=f"/{self.database}").geturl()

    def login(self, name: str) -> str:
        self.as_root("CREATE ROLE {} LOGIN PASSWORD {}", sql.Identifier(f"{name}_{self.mark}"), sql.Literal(PASSWORD))
        return f"{name}_{self.mark}"

    def as_root(self, statement: str, *parts: sql.Composable) -> list[tuple[object, ...]]:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            found = connection.execute(sql.SQL(statement).format(*parts))
            return found.fetchall() if found.description else []

    def manage(self, command: str, **urls: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", command],
            cwd=ROOT,
            env=os.environ | {"DATABASE_ROLE": self.role} | urls,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    place.as_root("CREATE DATABASE {}", sql.Identifier(place.database))
    yield place
    place.as_root("DROP DATABASE {} WITH (FORCE)", sql.Identifier(place.database))
    named = place.as_root("SELECT rolname FROM pg_roles WHERE rolname LIKE {}", sql.Literal(f"%{place.mark}%"))
    for (name,) in named:
        place.as_root("DROP ROLE {}", sql.Identifier(str(name)))


def test_the_runbook_makes_every_role_before_it_restores() -> None:
    """A dump holds policies and rights for the roles, and not the roles."""
    page = (ROOT / "docs" / "runbooks" / "upgrade-postgresql.md").read_text()
    made = re.findall(r"-c 'CREATE ROLE (\w+)'", page[: page.index("pg_restore -U broadcast")])
    assert made == [role_of(reach) for reach in Reach]


def test_a_login_that_owns_nothing_serves_what_another_migrates(place: Place) -> None:
    serving = place.login("serves")
    urls = {"DATABASE_URL": place.url(serving), "DATABASE_OWNER_URL": place.url()}
    migrated = place.manage("migrate_locked", **urls)
    assert migrated.returncode == 0, migrated.stderr
    listed = place.manage("list_api_keys", **urls)
    assert listed.returncode == 0, listed.stderr
    with psycopg.connect(place.url(serving)) as connection:
        owned = connection.execute("SELECT 1 FROM pg_class WHERE relowner = current_user::regrole").fetchall()
        assert owned == []
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(place.role)))
        with pytest.raises(psycopg.errors.UndefinedObject, match=r"broadcast\.organizations"):
            connection.execute("SELECT name FROM organizations WHERE id = uuid7()")


def test_a_login_that_may_make_no_role_is_told_what_to_do(place: Place) -> None:
    plain = place.login("plain")
    with psycopg.connect(place.url(), autocommit=True) as connection:
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    migrated = place.manage("migrate_locked", DATABASE_URL=place.url(plain))
    assert migrated.returncode != 0
    assert "Traceback" not in migrated.stderr
    roles = (place.role, f"{place.role}_several", f"{place.role}_sweep")
    # All that is missing at once: whoever may make roles is asked only once.
    said = " ".join(f'CREATE ROLE {role} NOLOGIN; GRANT {role} TO "{plain}";' for role in roles)
    assert migrated.stderr.rstrip().endswith(f"a superuser can: {said}")
    place.as_root(said)
    again = place.manage("migrate_locked", DATABASE_URL=place.url(plain))
    assert again.returncode == 0, again.stderr
