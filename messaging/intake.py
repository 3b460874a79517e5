"""Webhooks: down to disk as they came, before anything is understood."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from django.db import transaction

from messaging import doorbell
from messaging.faults import Point, reach
from messaging.models import Channel, WebhookEvent

# Enough to tell deliveries apart; signatures, cookies and keys are never among them.
KEPT_HEADERS = frozenset(
    {"content-type", "user-agent", "x-webhook-request-id", "x-webhook-timestamp", "x-webhook-hmac-algorithm"}
)


def store(*, channel: Channel, body: bytes, headers: Mapping[str, str], request_id: str, now: datetime) -> WebhookEvent:
    """Commit one verified delivery and ring its applier. ``headers``: names in any case."""
    kept = {name.lower(): _printable(value)[:255] for name, value in headers.items() if name.lower() in KEPT_HEADERS}
    with transaction.atomic():
        event = WebhookEvent.objects.create(
            organization_id=channel.organization_id,
            channel=channel,
            provider=channel.kind,
            request_id=_printable(request_id)[:128],
            headers=kept,
            body=body,
            received_at=now,
            next_try_at=now,
        )
        transaction.on_commit(partial(ring, channel))
    reach(Point.BETWEEN_RAW_ROW_AND_APPLY)
    return event


def ring(channel: Channel) -> None:
    """Ask a worker to apply a channel's events. A lost ring costs a minute: webhook-replay finds the rows."""
    doorbell.ring_apply(channel.pk, channel.organization_id)


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
