"""Whether the process lives, and whether the house around it is fit to serve."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_celery_beat.models import PeriodicTask

from messaging.models import CronRun

log = logging.getLogger(__name__)

_STARTED = time.monotonic()
_BROKER_TIMEOUT_SECONDS = 2
# Entries of beat that run every BEAT_SECONDS; any one of them is its pulse.
_PULSE_RUNS = ("sync-sessions", "recover-stuck-messages", "webhook-replay")
_MISSED_BEATS = 3


_IN_DATABASE = ("migrations", "beat")
_NO_DATABASE = "no answer from the database"


class Failing(Exception):
    """What is wrong, in words that are safe to show."""


@never_cache
@require_safe
def alive(_request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """200 where all parts do, else 503 that names each part that fails: ``{"status", "checks": {part: …}}``."""
    found: dict[str, str] = {}
    for part, check in CHECKS.items():
        # Each would wait for a connection as long again.
        lost = part in _IN_DATABASE and found["database"] != "ok"
        found[part] = _NO_DATABASE if lost else _outcome(part, check)
    is_ready = all(outcome == "ok" for outcome in found.values())
    answer = {"status": "ok" if is_ready else "failing", "checks": found}
    return JsonResponse(answer, status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def check_database() -> None:
    """The database answers a query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_broker() -> None:
    """The broker answers a PING."""
    try:
        _broker(settings.CELERY_BROKER_URL).ping()
    except redis.RedisError as error:
        raise Failing("no answer") from error


def check_migrations() -> None:
    """Every migration of this version is applied. Once seen, that stays true for this process."""
    if not _all_applied():
        _all_applied.cache_clear()
        raise Failing("not all applied")


def check_beat() -> None:
    """Periodic tasks run; a process younger than the patience gives beat the time of its first runs."""
    patience = _MISSED_BEATS * max(settings.BEAT_SECONDS, _interval())
    if time.monotonic() - _STARTED < patience:
        return
    since = timezone.now() - timedelta(seconds=patience)
    if not CronRun.objects.filter(name__in=_PULSE_RUNS, started_at__gte=since, finished_at__isnull=False).exists():
        raise Failing(f"no run in {patience} s")


def _interval() -> int:
    """Seconds between the runs as they are entered in beat, which an admin may have changed; 0 where unknown."""
    entry = PeriodicTask.objects.filter(name__in=_PULSE_RUNS, enabled=True).select_related("interval").first()
    every = entry.interval.schedule.run_every if entry is not None and entry.interval is not None else None
    return int(every.total_seconds()) if every is not None else 0


CHECKS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "broker": check_broker,
    "migrations": check_migrations,
    "beat": check_beat,
}


def _outcome(part: str, check: Callable[[], None]) -> str:
    try:
        check()
    except Failing as error:
        log.warning("not ready: %s: %s", part, error)
        return str(error)
    except DatabaseError as error:
        log.warning("not ready: %s: %s", part, type(error).__name__)
        return _NO_DATABASE
    return "ok"


@functools.cache
def _all_applied() -> bool:
    loader = MigrationLoader(connection)
    return bool(loader.graph.nodes.keys() <= loader.applied_migrations.keys())


@functools.cache
def _broker(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=_BROKER_TIMEOUT_SECONDS, socket_connect_timeout=_BROKER_TIMEOUT_SECONDS
    )
