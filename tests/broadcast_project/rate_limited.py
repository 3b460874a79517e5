"""A Celery application with one rate-limited task, run as a real worker by test_rate_limit."""

from __future__ import annotations

import os
import time

import redis
from celery import Celery

app = Celery("rate_limited", broker=os.environ["REDIS_URL"])
app.conf.update(
    worker_consumer=os.environ.get("CONSUMER", "celery.worker.consumer:Consumer"),
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    task_default_queue=os.environ["QUEUE"],
    worker_hijack_root_logger=False,
)
_client = redis.Redis.from_url(os.environ["REDIS_URL"])


@app.task(name="tick", rate_limit=os.environ.get("RATE", "50/s"))
def tick() -> None:
    _client.rpush(os.environ["QUEUE"] + ":ran", time.time())
