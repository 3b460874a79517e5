"""Whether the process lives, and whether the house around it is fit to serve.

An answer comes within some 5 s, whatever is away: the database is asked over a connection of its own, outside of
the pool that requests wait for, and nothing is waited for longer than 2 s.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, ProgrammingError, connection
from django.db.backends.base.base import NO_DB_ALIAS, BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import QuerySet
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django_celery_beat.models import PeriodicTask

from broadcast_project import pulse
from messaging import functions
from messaging.models import CronRun
from permissions.api.plain import answers, openapi_answer

log = logging.getLogger(__name__)

_STARTED = time.monotonic()
_TIMEOUT_SECONDS = 2
_BROKER_TIMEOUT_SECONDS = 1
# Entries of beat that run every BEAT_SECONDS; any one of them is its pulse.
_PULSE_RUNS = ("sync-sessions", "recover-stuck-messages", "webhook-replay")
_MISSED_BEATS = 3
# Longer than signs take to return to a broker that has lost everything.
_SIGN_PATIENCE_SECONDS = 20
_DISK_ASKED_EVERY_SECONDS = 10
_DISK_FULL = "53100"
# More rows than this memory holds: they go to a file on the database's disk, and with the statement they are gone.
_SPILL = "SELECT count(*) FROM generate_series(1, 20000)"
_SPILL_MEMORY = "SET work_mem = '64kB'"

_NO_DATABASE = "no answer from the database"
_NO_BROKER = "no answer"


_STATUS: dict[str, Any] = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["ok"]}}}
_CHECKS: dict[str, Any] = {
    "type": "object",
    "required": ["status", "checks"],
    "properties": {
        "status": {"enum": ["ok", "failing"]},
        "checks": {
            "type": "object",
            "description": "Each part is `ok`, or says in words what is wrong.",
            "additionalProperties": {"type": "string"},
        },
    },
}
_OPEN: dict[str, Any] = {"tags": ["service"], "security": []}
_ALIVE = _OPEN | {
    "summary": "Whether the process lives",
    "responses": {"200": openapi_answer("It does.", schema=_STATUS, media_type="application/json")},
}
_READY = _OPEN | {
    "summary": "Whether every part answers",
    "description": "Database and its disk, migrations, the pulse of beat, broker, dispatcher and worker.",
    "responses": {
        "200": openapi_answer("All do.", schema=_CHECKS, media_type="application/json"),
        "503": openapi_answer("Those that do not are named.", schema=_CHECKS, media_type="application/json"),
    },
}


class Failing(Exception):
    """What is wrong, in words that are safe to show."""


@answers("GET", openapi={"get": _ALIVE})
@never_cache
def alive(_request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return JsonResponse({"status": "ok"})


@answers("GET", openapi={"get": _READY})
@never_cache
def ready(_request: HttpRequest) -> JsonResponse:
    """200 where all parts do, else 503 that names each part that fails: ``{"status", "checks": {part: …}}``."""
    with _own_connection() as own:
        found = _outcomes(DATABASE_CHECKS, _NO_DATABASE, own) | _outcomes(BROKER_CHECKS, _NO_BROKER)
    is_ready = all(outcome == "ok" for outcome in found.values())
    answer = {"status": "ok" if is_ready else "failing", "checks": found}
    return JsonResponse(answer, status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def check_database(own: BaseDatabaseWrapper) -> None:
    """The database answers a query."""
    with own.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_disk(own: BaseDatabaseWrapper) -> None:
    """The database's disk takes more: one that is full still answers queries, and refuses what is to be written."""
    now = time.monotonic()
    if now - _disk.asked_at >= _DISK_ASKED_EVERY_SECONDS:
        _disk.asked_at, _disk.full = now, _is_full(own)
    if _disk.full:
        raise Failing("full: the database can write nothing")


def check_migrations(own: BaseDatabaseWrapper) -> None:
    """Every migration of this version is applied, and what comes with them. Once seen, that stays true."""
    if _migrations.applied:
        return
    table = own.ops.quote_name(MigrationRecorder.Migration._meta.db_table)
    try:
        with own.cursor() as cursor:
            cursor.execute(f"SELECT app, name FROM {table}")  # noqa: S608  its own name
            applied = set(cursor.fetchall())
    except ProgrammingError:
        applied = set()
    if not MigrationLoader(None, ignore_no_migrations=True).graph.nodes.keys() <= applied:
        raise Failing("not all applied")
    if not functions.are_current(own):
        raise Failing("the engine's functions are another version's: run migrate")
    _migrations.applied = True


def check_beat(own: BaseDatabaseWrapper) -> None:
    """Periodic tasks run; a process younger than the patience gives beat the time of its first runs."""
    patience = _MISSED_BEATS * max(settings.BEAT_SECONDS, _interval(own))
    if time.monotonic() - _STARTED < patience:
        return
    since = timezone.now() - timedelta(seconds=patience)
    runs = CronRun.objects.filter(name__in=_PULSE_RUNS, started_at__gte=since, finished_at__isnull=False)
    if not _rows(own, runs.values_list("pk")[:1]):
        raise Failing(f"no run in {patience} s")


def check_broker() -> None:
    """The broker answers a PING."""
    _broker(settings.CELERY_BROKER_URL).ping()


def check_dispatcher() -> None:
    """A dispatcher goes its rounds."""
    _check_sign("dispatcher")


def check_worker() -> None:
    """A worker consumes what it is rung for."""
    _check_sign("worker")


DATABASE_CHECKS: dict[str, Callable[[BaseDatabaseWrapper], None]] = {
    "database": check_database,
    "disk": check_disk,
    "migrations": check_migrations,
    "beat": check_beat,
}
BROKER_CHECKS: dict[str, Callable[[], None]] = {
    "broker": check_broker,
    "dispatcher": check_dispatcher,
    "worker": check_worker,
}


@dataclass(slots=True)
class _Disk:
    """What the database's disk was last found to be; `asked_at` is monotonic."""

    asked_at: float = -_DISK_ASKED_EVERY_SECONDS
    full: bool = False


@dataclass(slots=True)
class _Migrations:
    """Whether all were seen applied."""

    applied: bool = False


_disk = _Disk()
_migrations = _Migrations()
# When a part last showed a sign of life, by the monotonic clock.
_seen: dict[str, float] = {}


def _outcomes(checks: Mapping[str, Callable[..., None]], lost: str, *arguments: Any) -> dict[str, str]:
    """The word on each part. Once one can't be asked the rest is not: each would wait as long again."""
    found: dict[str, str] = {}
    for part, check in checks.items():
        if lost not in found.values():
            found[part] = _outcome(part, check, lost, *arguments)
        else:
            found[part] = lost
    return found


def _outcome(part: str, check: Callable[..., None], lost: str, *arguments: Any) -> str:
    try:
        check(*arguments)
    except Failing as error:
        log.warning("not ready: %s: %s", part, error)
        return str(error)
    except (DatabaseError, redis.RedisError) as error:
        log.warning("not ready: %s: %s", part, type(error).__name__)
        return lost
    return "ok"


@contextmanager
def _own_connection() -> Iterator[BaseDatabaseWrapper]:
    """A connection outside of the pool, not opened yet, that gives up soon."""
    own = connection.copy(alias=NO_DB_ALIAS)
    milliseconds = _TIMEOUT_SECONDS * 1000
    own.settings_dict["OPTIONS"] |= {
        "connect_timeout": _TIMEOUT_SECONDS,
        "tcp_user_timeout": milliseconds,
        "options": f"{own.settings_dict['OPTIONS'].get('options', '')} -c statement_timeout={milliseconds}",
    }
    try:
        yield own
    finally:
        own.close()


def _is_full(own: BaseDatabaseWrapper) -> bool:
    try:
        with own.cursor() as cursor:
            cursor.execute(_SPILL_MEMORY)
            cursor.execute(_SPILL)
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) != _DISK_FULL:
            raise
        return True
    return False


def _interval(own: BaseDatabaseWrapper) -> int:
    """Seconds between the runs as they are entered in beat, which an admin may have changed; 0 where unknown."""
    entries = PeriodicTask.objects.filter(name__in=_PULSE_RUNS, enabled=True, interval__isnull=False)
    for every, period in _rows(own, entries.values_list("interval__every", "interval__period")[:1]):
        return int(timedelta(**{period: every}).total_seconds())
    return 0


def _rows(own: BaseDatabaseWrapper, query: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    statement, parameters = query.query.sql_with_params()
    with own.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def _check_sign(part: str) -> None:
    now = time.monotonic()
    if cache.get(pulse.key(part)) is not None:
        _seen[part] = now
    elif now - _seen.get(part, _STARTED) > _SIGN_PATIENCE_SECONDS:
        raise Failing("no sign of life")


@functools.cache
def _broker(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=_BROKER_TIMEOUT_SECONDS, socket_connect_timeout=_BROKER_TIMEOUT_SECONDS
    )
