"""Webhooks: down to disk as they came, before anything is understood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from django.db import transaction

from messaging import db, doorbell
from messaging.faults import Point, reach
from messaging.models import Channel

# Enough to tell deliveries apart; signatures, cookies and keys are never among them.
KEPT_HEADERS = frozenset(
    {"content-type", "user-agent", "x-webhook-request-id", "x-webhook-timestamp", "x-webhook-hmac-algorithm"}
)


# By itself a transaction: one round trip stands between WAHA and its 200.
_STORE = """
INSERT INTO webhook_events_log (organization_id, channel_id, provider, request_id, headers, body, received_at, state,
    event_type, attempts, next_try_at, error)
VALUES (%(organization)s, %(channel)s, %(provider)s, %(request_id)s, %(headers)s::jsonb, %(body)s, %(now)s, 'received',
    '', 0, %(now)s, '')
RETURNING id
"""


def store(*, channel: Channel, body: bytes, headers: Mapping[str, str], request_id: str, now: datetime) -> int:
    """Commit one verified delivery and ring its applier; the row's id. ``headers``: names in any case."""
    kept = {name.lower(): _printable(value)[:255] for name, value in headers.items() if name.lower() in KEPT_HEADERS}
    (event_id,) = db.row(
        _STORE,
        {
            "organization": channel.organization_id,
            "channel": channel.pk,
            "provider": channel.kind,
            "request_id": _printable(request_id)[:128],
            "headers": json.dumps(kept),
            "body": body,
            "now": now,
        },
    )
    transaction.on_commit(partial(ring, channel))
    reach(Point.BETWEEN_RAW_ROW_AND_APPLY)
    return int(event_id)


def ring(channel: Channel) -> None:
    """Ask a worker to apply a channel's events. A lost ring costs a minute: webhook-replay finds the rows."""
    doorbell.ring_apply(channel.pk, channel.organization_id)


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
