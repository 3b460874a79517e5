"""Services for a test run: an embedded PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL name others.

Loaded by `-p tests.plugin`, since pytest-django reads the settings before any conftest.py. The first process
of a run starts the services; pytest-xdist's workers inherit their addresses, and each has a database of
Valkey to itself as pytest-django gives each a database of PostgreSQL.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from urllib.parse import urlsplit

import pytest

from broadcast_project.embedded import STATE, AlreadyRunningError, Embedded

_RUNS_AT_ONCE = 16


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Have both addresses in the environment before Django's settings are read."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None and not {"DATABASE_URL", "REDIS_URL"} <= os.environ.keys():
        _start(early_config)
    if worker is not None:
        os.environ["REDIS_URL"] = _own_database(os.environ["REDIS_URL"], int(worker.removeprefix("gw")) + 1)
    return (yield)


def _start(config: pytest.Config) -> None:
    services = _first_free()
    config.add_cleanup(services.stop)
    addresses = services.addresses
    os.environ.setdefault("DATABASE_URL", addresses.database_url)
    os.environ.setdefault("REDIS_URL", addresses.redis_url)
    for name in ("SECRET_KEY", "FIELD_ENCRYPTION_KEYS"):
        os.environ.setdefault(name, secrets.token_urlsafe(48))


def _first_free() -> Embedded:
    """Start services in the first place that no other test run of this checkout holds."""
    for number in range(1, _RUNS_AT_ONCE + 1):
        services = Embedded(STATE, name=f"tests-{number}", durable=False)
        try:
            services.start()
        except AlreadyRunningError:
            continue
        return services
    raise pytest.UsageError(f"{_RUNS_AT_ONCE} test runs of this checkout are under way already")


def _own_database(url: str, number: int) -> str:
    """The same server's database of that number (a stock server has 16)."""
    return urlsplit(url)._replace(path=f"/{number}").geturl()
