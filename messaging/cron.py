"""Periodic runs: one at a time wherever beat runs, each a row, one failing without stopping the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from messaging import apply, db, doorbell, lanes, recovery, restrictions
from messaging.models import CronRun, Receipt, WebhookEvent
from permissions import services as permissions

log = logging.getLogger(__name__)

# An ack that waits for its message does so for seconds; after days it is somebody else's.
UNMATCHED_DAYS = 30

# Tells the advisory locks of runs from those of other kinds.
_LOCK = 2
# A step names itself and says how many items it dealt with.
Step = tuple[str, Callable[[], int]]


def run(name: str, *steps: Step) -> CronRun | None:
    """Run the steps of one periodic task under its lock; None where another run holds it."""
    with db.tried_lock(_LOCK, name) as ours:
        return _run(name, steps) if ours else None


def _run(name: str, steps: Sequence[Step]) -> CronRun:
    record = CronRun.objects.create(name=name, started_at=db.database_now())
    for step, work in steps:
        try:
            record.items_processed += work()
        except Exception as error:
            log.exception("%s: %s failed", name, step)
            record.errors.append(f"{step}: {type(error).__name__}")
    record.finished_at = db.database_now()
    record.save(update_fields=["items_processed", "errors", "finished_at"])
    return record


def recover_stuck_messages() -> CronRun | None:
    """What got stuck is looked up, named or freed; nothing is sent again."""
    return run(
        "recover-stuck-messages",
        ("free lanes", lanes.free_overdue),
        ("end restrictions", lambda: restrictions.end_those_over(now=db.database_now())),
        ("renew figures", lanes.renew_figures),
        ("look up what was not heard of", recovery.look_up),
        ("doubt what was not heard of", recovery.doubt_unheard),
        ("end queued messages", recovery.end_queued),
        ("wake lanes", lanes.wake_sleepers),
    )


def replay_webhooks() -> CronRun | None:
    """Ring for every channel that has open events whose time has come."""
    return run("webhook-replay", ("ring for open events", ring_open_events))


def drop_what_is_old(*, now: datetime) -> CronRun | None:
    """Raw events past their retention, and first answers that no repeated request will ask for."""
    return run(
        "retention",
        ("drop old raw events", lambda: drop_old_events(settings.WEBHOOK_RETENTION_DAYS)),
        ("drop unmatched receipts", drop_unmatched_receipts),
        ("drop old first answers", lambda: permissions.sweep_idempotency_records(now=now)),
    )


def ring_open_events() -> int:
    """Ring the appliers of organizations with open events; how many."""
    due = (
        WebhookEvent.objects.filter(state__in=apply.OPEN, next_try_at__lte=db.database_now())
        .order_by()
        .exclude(channel=None)
        .values_list("organization_id", flat=True)
        .distinct()
    )
    for organization_id in due:
        doorbell.ring_apply(organization_id)
    return len(due)


def drop_old_events(days: int, *, batch: int = 5000) -> int:
    """Drop raw events older than ``days``, in batches, and never one that was not applied; how many.

    One that is dead was not: it stays until somebody has it replayed.
    """
    before = db.database_now() - timedelta(days=days)
    done = (WebhookEvent.State.APPLIED, WebhookEvent.State.IGNORED)
    old = WebhookEvent.objects.filter(received_at__lt=before, state__in=done)
    return _drop(old, batch)


def drop_unmatched_receipts(*, batch: int = 5000) -> int:
    """Drop what was told of ids that no message of ours ever had, after UNMATCHED_DAYS; how many."""
    before = db.database_now() - timedelta(days=UNMATCHED_DAYS)
    return _drop(Receipt.objects.filter(message=None, created_at__lt=before), batch)


def _drop(rows: QuerySet[Any], batch: int) -> int:
    total = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:batch]):
        # Conditions are asked again: a receipt may have met its message meanwhile.
        number, _ = rows.filter(pk__in=keys).delete()
        total += number
        if not number:
            break
    return total
