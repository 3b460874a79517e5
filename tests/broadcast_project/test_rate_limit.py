"""Celery's rate limit under a backlog, with a real worker: Celery is private API here, and pinned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import redis
from celery import Celery
from django.conf import settings

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
RATE = 50
TASKS = 150


def test_a_backlog_runs_at_its_rate() -> None:
    queue = f"test-{uuid.uuid4().hex[:8]}"
    client = redis.Redis.from_url(settings.REDIS_URL)
    app = Celery(broker=settings.REDIS_URL)
    for _ in range(TASKS):
        app.send_task("tick", queue=queue, ignore_result=True)
    worker = _worker(queue)
    try:
        assert until(lambda: client.llen(f"{queue}:ran") == TASKS, timeout=60)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    ran = [float(moment) for moment in client.lrange(f"{queue}:ran", 0, -1)]
    client.delete(f"{queue}:ran")
    # A ratio to the nominal rate, not a time: stock Celery reaches 0.02 to 0.1 of it.
    rate = (len(ran) - 1) / (max(ran) - min(ran))
    assert 0.8 <= rate / RATE <= 1.05


def _worker(queue: str) -> subprocess.Popen[bytes]:
    arguments = ["-m", "celery", "-A", "tests.broadcast_project.rate_limited", "worker"]
    pool = ["-P", "threads", "-c", "4", "-Q", queue, "-l", "ERROR", "-n", f"{queue}@localhost"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    environment = {
        **os.environ,
        "QUEUE": queue,
        "RATE": f"{RATE}/s",
        "REDIS_URL": settings.REDIS_URL,
        "CONSUMER": settings.CELERY_WORKER_CONSUMER,
    }
    return subprocess.Popen(
        [sys.executable, *arguments, *pool, *quiet], cwd=ROOT, env=environment, start_new_session=True
    )
