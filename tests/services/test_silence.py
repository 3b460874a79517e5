"""A process that lives but does nothing is noticed, said, and started again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from celery import Celery
from celery.app.control import Control

from broadcast_project.embedded import Embedded
from broadcast_project.supervisor import Process, Supervisor, product
from tests.waiting import until

PATIENCE = 8.0


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, name: str, line: str) -> None:
        self.lines.append(f"{name} | {line}")

    def has(self, words: str) -> bool:
        return any(words in line for line in self.lines)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Embedded]:
    services = Embedded(tmp_path, durable=False)
    services.start()
    yield services
    services.stop()


@pytest.fixture
def worker(services: Embedded, log: Log) -> Iterator[Supervisor]:
    """The product's own worker, at work; with less patience, but more than its start takes."""
    (process,) = (process for process in product.processes(0) if process.name == "worker")
    with supervised(services, log, replace(process, patience=PATIENCE)) as supervisor:
        assert until(lambda: signs(services, "worker"), timeout=60), log.lines[-20:]
        yield supervisor


def supervised(services: Embedded, log: Log, *processes: Process) -> Supervisor:
    addresses = services.addresses
    env = {**os.environ, "DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url}
    return Supervisor(processes, env=env, log=log)


def signs(services: Embedded, part: str) -> bool:
    with redis.Redis.from_url(services.addresses.redis_url) as broker:
        return bool(list(broker.scan_iter(f"*sign-of-life:{part}")))


def consumed(control: Control) -> list[str]:
    """The queues that the only worker consumes."""
    (queues,) = (control.inspect(timeout=5, limit=1).active_queues() or {"": []}).values()
    return [queue["name"] for queue in queues]


def test_worker_whose_consumer_went_silent_is_replaced(services: Embedded, worker: Supervisor, log: Log) -> None:
    """B130: it reconnects to the broker and consumes nothing."""
    before = worker.pids()["worker"]
    control = Celery(broker=services.addresses.redis_url).control
    # It lives, and answers pings; only its consumer hears nothing any more.
    for queue in consumed(control):
        control.cancel_consumer(queue, reply=True, limit=1)
    assert control.ping(timeout=5, limit=1)
    assert consumed(control) == []
    assert until(lambda: log.has("worker | silent for 8 s, ending it"), timeout=30), log.lines[-20:]
    assert until(lambda: worker.pids().get("worker") not in {None, before}, timeout=30)
    assert until(lambda: signs(services, "worker"), timeout=60)


def test_worker_that_stands_still_is_replaced(services: Embedded, worker: Supervisor, log: Log) -> None:
    before = worker.pids()["worker"]
    os.kill(before, signal.SIGSTOP)
    assert until(lambda: log.has("worker | silent for 8 s, ending it"), timeout=30), log.lines[-20:]
    assert until(lambda: log.has("worker | ended (SIGKILL)"), timeout=30), log.lines[-20:]
    assert until(lambda: signs(services, "worker") and worker.pids()["worker"] != before, timeout=60)


def test_worker_outlives_a_broker_that_is_away_for_longer_than_the_patience(
    services: Embedded, worker: Supervisor, log: Log
) -> None:
    before = worker.pids()["worker"]
    services.kill_valkey()
    threading.Event().wait(PATIENCE + 4)
    services.start_valkey()
    assert until(lambda: signs(services, "worker"), timeout=60), log.lines[-20:]
    assert worker.pids()["worker"] == before
    assert not log.has("silent")


def test_worker_that_ends_leaves_no_queue_behind(services: Embedded, worker: Supervisor, log: Log) -> None:
    worker.stop()
    with redis.Redis.from_url(services.addresses.redis_url) as broker:
        assert list(broker.scan_iter("pulse.*")) == []
        # Nor a binding: the broker would keep one for every worker that ever was.
        assert not [key for key in broker.scan_iter("_kombu.binding.*") if b"pulse" in key]
    assert not log.has("undeliverable")
