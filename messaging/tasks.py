"""Celery tasks: primitives in, one service call."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from messaging import apply, cron, delivery, doorbell, slices
from messaging.lanes import Claim, Slice
from permissions import isolation
from permissions.tasks import BeatTask


# A ceiling per worker process against a released backlog; the pace is the gate's (docs/decisions).
@shared_task(name=doorbell.SEND, rate_limit=settings.SEND_WORKER_RATE)
def send_message(message_id: str, channel_id: str, lease: int, *, organization_id: str) -> None:
    delivery.deliver(Claim(UUID(message_id), UUID(channel_id), lease, UUID(organization_id)))


@shared_task(name=doorbell.SEND_SLICE, rate_limit=settings.SEND_WORKER_RATE)
def send_messages(message_ids: list[str], channel_id: str, lease: int, *, organization_id: str) -> None:
    keys = tuple(map(UUID, message_ids))
    slices.deliver(Slice(keys, UUID(channel_id), lease, UUID(organization_id)))


@shared_task(name=doorbell.APPLY)
def apply_events() -> None:
    for key in doorbell.answered():
        with isolation.of(key):
            apply.answer(key, now=timezone.now())


@shared_task(name="messaging.tasks.recover_stuck_messages", base=BeatTask)
def recover_stuck_messages() -> None:
    cron.recover_stuck_messages()


@shared_task(name="messaging.tasks.webhook_replay", base=BeatTask)
def webhook_replay() -> None:
    cron.replay_webhooks()


@shared_task(name="messaging.tasks.retention", base=BeatTask)
def retention() -> None:
    cron.drop_what_is_old(now=timezone.now())
