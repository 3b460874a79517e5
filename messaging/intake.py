"""Webhooks: down to disk as they came, before anything is understood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from messaging import db, doorbell
from messaging.faults import Point, reach
from messaging.models import Channel

# Enough to tell deliveries apart; signatures, cookies and keys are never among them.
KEPT_HEADERS = frozenset(
    {"content-type", "user-agent", "x-webhook-request-id", "x-webhook-timestamp", "x-webhook-hmac-algorithm"}
)


_STORE = "SELECT engine_store(%s, %s, %s, %s, %s::jsonb, %s, %s)"


def store(*, channel: Channel, body: bytes, headers: Mapping[str, str], request_id: str, now: datetime) -> int:
    """Commit one verified delivery and ring its applier; the row's id. ``headers``: names in any case."""
    kept = {name.lower(): _printable(value)[:255] for name, value in headers.items() if name.lower() in KEPT_HEADERS}
    ((event_id,),) = db.engine(
        _STORE,
        [channel.organization_id, channel.pk, channel.kind, _printable(request_id)[:128], json.dumps(kept), body, now],
    )
    transaction.on_commit(partial(ring, channel.organization_id))
    reach(Point.BETWEEN_RAW_ROW_AND_APPLY)
    return int(event_id)


def ring(organization_id: UUID) -> None:
    """Ask a worker to apply an organization's events. A lost ring costs seconds: the sweep finds the rows."""
    doorbell.ring_apply(organization_id)


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())
