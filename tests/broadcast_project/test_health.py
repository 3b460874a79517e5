"""Ready means that every part answers; otherwise the answer names those that don't."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from broadcast_project import health, pulse
from messaging.models import CronRun

pytestmark = pytest.mark.django_db

WELL = dict.fromkeys(("database", "disk", "migrations", "beat", "broker", "dispatcher", "worker"), "ok")
# Readiness looks from a connection of its own, which sees what is committed.
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(health, "_migrations", health._Migrations())
    monkeypatch.setattr(health, "_disk", health._Disk())
    monkeypatch.setattr(health, "_seen", {})
    monkeypatch.setattr(health, "_STARTED", time.monotonic())
    cache.delete_many([pulse.key("dispatcher"), pulse.key("worker")])
    yield
    cache.delete_many([pulse.key("dispatcher"), pulse.key("worker")])


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
    assert checks(client) == WELL


@committed
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

    lost = dict.fromkeys(("broker", "dispatcher", "worker"), "no answer")
    assert checks(client) == WELL | lost


@committed
def test_a_missing_migration_is_named_until_it_is_there(client: Client) -> None:
    applied = MigrationRecorder.Migration.objects.get(app="permissions", name="0001_initial")
    applied.delete()
    try:
        assert checks(client)["migrations"] == "not all applied"
    finally:
        applied.save(force_insert=True)
    assert checks(client)["migrations"] == "ok"


@pytest.mark.usefixtures("old_process")
@pytest.mark.parametrize("part", ["dispatcher", "worker"])
def test_a_part_of_which_nobody_is_at_work_is_named(client: Client, part: str) -> None:
    assert checks(client)[part] == "no sign of life"
    pulse._sign(part)
    assert checks(client)[part] == "ok"


@pytest.mark.usefixtures("old_process")
def test_a_broker_that_lost_everything_makes_nobody_look_dead(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    pulse._sign("worker")
    assert checks(client)["worker"] == "ok"

    cache.clear()
    assert checks(client)["worker"] == "ok"

    monkeypatch.setitem(health._seen, "worker", time.monotonic() - 21)
    assert checks(client)["worker"] == "no sign of life"


def test_without_a_database_nothing_waits_for_it_twice(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_database(_own: object) -> None:
        raise OperationalError("connection to server at 10.0.0.1 failed: password for user ana")

    def never(_own: object) -> None:
        raise AssertionError("asked the database again")

    monkeypatch.setitem(health.DATABASE_CHECKS, "database", no_database)
    monkeypatch.setitem(health.DATABASE_CHECKS, "beat", never)

    lost = dict.fromkeys(("database", "disk", "migrations", "beat"), "no answer from the database")
    assert checks(client) == WELL | lost


def test_a_database_that_takes_the_call_and_says_nothing_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = connection.copy()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        elsewhere.settings_dict |= {"HOST": "127.0.0.1", "PORT": silent.getsockname()[1]}
        elsewhere.settings_dict["OPTIONS"].pop("host", None)
        monkeypatch.setattr(health, "connection", elsewhere)
        asked_at = time.monotonic()

        assert checks(client)["database"] == "no answer from the database"

    # Less than the pool would have waited, and than whoever asks has patience for.
    assert time.monotonic() - asked_at < 5


def test_a_busy_pool_does_not_keep_readiness_waiting(
    client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    # None of its questions goes over the connection that requests share.
    with django_assert_num_queries(0):
        assert checks(client) == WELL


def test_a_full_disk_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
    with monkeypatch.context() as patched:
        patched.setattr(health, "_SPILL", full)
        assert checks(client) == WELL | {"disk": "full: the database can write nothing"}
    # It is not asked at every call.
    assert checks(client)["disk"] == "full: the database can write nothing"

    monkeypatch.setattr(health, "_disk", health._Disk())
    assert checks(client) == WELL
