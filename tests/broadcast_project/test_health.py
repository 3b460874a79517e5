"""Ready means that every part answers; otherwise the answer names those that don't."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from broadcast_project import health
from messaging.models import CronRun

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    health._all_applied.cache_clear()
    yield
    health._all_applied.cache_clear()


@pytest.fixture
def old_process(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.BEAT_SECONDS = 60
    monkeypatch.setattr(health, "_STARTED", time.monotonic() - 181)


def checks(client: Client) -> dict[str, str]:
    response = client.get("/health/ready")
    body: dict[str, Any] = response.json()
    failing = [part for part, outcome in body["checks"].items() if outcome != "ok"]
    assert response.status_code == (503 if failing else 200)
    assert body["status"] == ("failing" if failing else "ok")
    assert "no-cache" in response["Cache-Control"]
    return body["checks"]  # type: ignore[no-any-return]


def run(name: str, *, started: int, finished: bool = True) -> None:
    at = timezone.now() - timedelta(seconds=started)
    CronRun.objects.create(name=name, started_at=at, finished_at=at if finished else None)


def test_alive_asks_nothing(client: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        response = client.get("/health")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
def test_health_is_read_and_not_posted(client: Client, path: str) -> None:
    assert client.head(path).status_code == 200
    assert client.post(path).status_code == 405


def test_a_young_process_is_ready_before_the_first_run_of_beat(client: Client) -> None:
    assert checks(client) == {"database": "ok", "broker": "ok", "migrations": "ok", "beat": "ok"}


@pytest.mark.usefixtures("old_process")
def test_an_old_one_needs_beats_pulse(client: Client) -> None:
    assert checks(client)["beat"] == "no run in 180 s"

    run("sync-sessions", started=200)
    run("sync-sessions", started=10, finished=False)
    run("something-else", started=10)
    assert checks(client)["beat"] == "no run in 180 s"

    run("webhook-replay", started=100)
    assert checks(client)["beat"] == "ok"


def test_without_a_broker_it_is_not_ready(client: Client, settings: LazySettings) -> None:
    # Nothing listens on this port of the loopback.
    settings.CELERY_BROKER_URL = "redis://:segredo@127.0.0.1:1/0"

    assert checks(client) == {"database": "ok", "broker": "no answer", "migrations": "ok", "beat": "ok"}


def test_a_missing_migration_is_named_until_it_is_there(client: Client) -> None:
    applied = MigrationRecorder.Migration.objects.get(app="permissions", name="0001_initial")
    applied.delete()
    assert checks(client)["migrations"] == "not all applied"

    applied.save(force_insert=True)
    assert checks(client)["migrations"] == "ok"


def test_without_a_database_nothing_waits_for_it_twice(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_database() -> None:
        raise OperationalError("connection to server at 10.0.0.1 failed: password for user ana")

    def never() -> None:
        raise AssertionError("asked the database again")

    monkeypatch.setitem(health.CHECKS, "database", no_database)
    monkeypatch.setitem(health.CHECKS, "beat", never)

    lost = "no answer from the database"
    assert checks(client) == {"database": lost, "broker": "ok", "migrations": lost, "beat": lost}
