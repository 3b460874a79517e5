"""The dispatcher: finds due lanes, rings workers for them, keeps lanes fed. Two of it may run."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Event

import psycopg
from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from broadcast_project import pulse
from broadcasts import feed
from broadcasts import services as broadcasts
from messaging import cron, doorbell, lanes
from messaging.faults import Point, reach

log = logging.getLogger(__name__)

FEED_SECONDS = 0.5
RECOVER_SECONDS = 1.0
EVENTS_SECONDS = 2.0
RIGHTS_SECONDS = 20.0
AWAY_SECONDS = 1.0
CHORES_SECONDS = 0.1
# While there is work, lanes are looked at more often: one whose message has just left may go on.
BUSY_SECONDS = 1.0
BUSY_TICK_SECONDS = 0.02
STOP_SECONDS = 10.0


@dataclass(slots=True)
class Chore:
    """Something done every so often; ``work`` says how much there was."""

    name: str
    every: float
    work: Callable[[], int]
    due_at: float = field(default=0.0)


def chores() -> list[Chore]:
    """What the dispatcher does beside claiming."""
    return [
        Chore("launch broadcasts", FEED_SECONDS, lambda: broadcasts.launch_due(now=timezone.now())),
        Chore("feed lanes", FEED_SECONDS, lambda: feed.run(now=timezone.now())),
        Chore("complete broadcasts", FEED_SECONDS, lambda: broadcasts.complete_finished(now=timezone.now())),
        Chore("judge rights", RIGHTS_SECONDS, lambda: broadcasts.pause_unentitled(now=timezone.now())),
        Chore("free lanes", RECOVER_SECONDS, lanes.free_overdue),
        Chore("ring for events", EVENTS_SECONDS, cron.ring_open_events),
    ]


def run(stop: Event) -> None:
    """Tick until told to stop. A database that is away is waited for; nothing is remembered over it."""
    chored = Event()
    beside = threading.Thread(target=copy_context().run, args=(_run_chores, stop, chored), name="chores", daemon=True)
    beside.start()
    while not stop.is_set():
        try:
            with _listener() as listener:
                _claim_on(stop, listener, chored)
        except (Error, psycopg.Error) as error:
            log.warning("the database is away: %s", type(error).__name__)
            connection.close()
            # It waits, and that is its work now.
            pulse.show("dispatcher")
            stop.wait(AWAY_SECONDS)
    beside.join(timeout=STOP_SECONDS)


def _claim_on(stop: Event, listener: psycopg.Connection, chored: Event) -> None:
    claimed_at = 0.0
    while not stop.is_set():
        if chored.is_set():
            # Both threads live: one that hangs lets the pulse end.
            chored.clear()
            pulse.show("dispatcher")
        if dispatch():
            claimed_at = time.monotonic()
        is_at_it = time.monotonic() - claimed_at < BUSY_SECONDS
        # Wait for a tick, or for the first word of new work.
        timeout = min(BUSY_TICK_SECONDS if is_at_it else math.inf, settings.DISPATCH_TICK_SECONDS)
        for _notice in listener.notifies(timeout=timeout, stop_after=1):
            pass


def _run_chores(stop: Event, chored: Event) -> None:
    """Beside the claims, which none of this is to delay: feeding many lanes takes seconds."""
    work = chores()
    while not stop.is_set():
        for chore in work:
            chored.set()
            if chore.due_at <= time.monotonic() and not stop.is_set():
                _do(chore)
        stop.wait(CHORES_SECONDS)
    connection.close()


def _do(chore: Chore) -> None:
    """One chore's fault stops neither the others nor the claims; it is tried again when it is due."""
    try:
        chore.work()
    except Exception:
        log.exception("%s failed", chore.name)
        connection.close()
    chore.due_at = time.monotonic() + chore.every


def dispatch() -> int:
    """Claim what is due and ring for it; how many. No more than workers can begin before the leases end."""
    room = settings.DISPATCH_BACKLOG - doorbell.backlog()
    claims, slices = lanes.claim(limit=room), lanes.reserve(limit=room)
    if doorbell.ring_send(claims) and doorbell.ring_slices(slices) and (claims or slices):
        reach(Point.AFTER_RING)
    return len(claims) + len(slices)


def _listener() -> psycopg.Connection:
    """A connection of its own: Django's goes back to the pool and would lose what it listens to."""
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    listener = psycopg.connect(**{**parameters, "autocommit": True})
    listener.execute("LISTEN lanes")
    return listener
