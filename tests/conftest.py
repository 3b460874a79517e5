"""What every test has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.conf import settings as django_settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from channels_waha import selectors
from permissions import isolation
from permissions.isolation import Reach, Sweep
from permissions.postgres.base import DatabaseWrapper
from permissions.postgres.scoping import role_of


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """The real hasher takes a third of a second for each person."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def no_flood(settings: Settings) -> None:
    """The bad keys of all tests come from one address."""
    settings.API_BAD_KEYS_PER_MINUTE = 1_000_000


@pytest.fixture(autouse=True)
def unknown_callers() -> None:
    """Whoever posted in another test is not remembered: his rows are gone."""
    selectors.forget_callers()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """The tests' database is made by the owner: the role that serves could not."""
    _serve_as("none")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Every test runs as the role that serves, which row-level security binds."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        # Django empties the tables after a test with transactions of its own.
        roles = ", ".join(role_of(reach) for reach in Reach)
        cursor.execute(f"GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO {roles}")
        _serve_as(django_settings.DATABASE_ROLE)
    yield
    _serve_as("none")


@pytest.fixture(autouse=True)
def whole_view() -> Iterator[None]:
    """A test arranges and looks at rows of any tenant; what it calls enters its own scope, as it will in use."""
    with isolation.across_tenants(Sweep.COMMAND, "test"):
        yield


def _serve_as(role: str) -> None:
    wrapper = connections[DEFAULT_DB_ALIAS]
    assert isinstance(wrapper, DatabaseWrapper)
    options = wrapper.settings_dict["OPTIONS"]
    options["options"] = re.sub(r"-c role=\S+", f"-c role={role}", options["options"])
    wrapper.close()
    wrapper.close_pool()
