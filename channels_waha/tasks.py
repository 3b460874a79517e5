"""Celery tasks of this room."""

from __future__ import annotations

from celery import shared_task

from channels_waha import syncing
from permissions.tasks import BeatTask


@shared_task(name="channels_waha.tasks.sync_sessions", base=BeatTask)
def sync_sessions() -> None:
    syncing.sync_sessions()
