"""Signals that WhatsApp restricts a number: reported by the channels' rooms, ended by them or by their own time.

While one holds, the lane writes to nobody new; after it the lane goes slowly for a while (messaging.policy). What is
queued stays queued: nothing fails, and nothing is burnt.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from events import services as events
from messaging import db, lanes
from messaging.models import Restriction
from permissions import ids

_LOCK = "SELECT organization_id FROM lanes WHERE channel_id = %s FOR UPDATE"


def report(channel_id: UUID, code: Restriction.Code, *, now: datetime, ends_at: datetime | None = None) -> bool:
    """A signal was met; whether it is a new one. One that holds already is told once, and may be told to last longer.

    ``ends_at``: when it ends by itself, where WhatsApp says so; else somebody calls ``end``.
    """
    with transaction.atomic():
        (organization_id,) = db.row(_LOCK, [channel_id])
        _end(_open(channel_id, code).filter(ends_at__lte=now), now)
        known = _open(channel_id, code).first()
        if known is None:
            Restriction.objects.create(
                organization_id=organization_id, channel_id=channel_id, code=code, began_at=now, ends_at=ends_at
            )
            _tell(organization_id, channel_id, code, "restricted", now)
        elif known.ends_at is not None and (ends_at is None or ends_at > known.ends_at):
            known.ends_at = ends_at
            known.save(update_fields=["ends_at"])
        lanes.refresh_figures(channel_id)
    return known is None


def end(channel_id: UUID, code: Restriction.Code, *, now: datetime) -> bool:
    """The signal is over: from now on the ramp; whether it held."""
    with transaction.atomic():
        db.rows(_LOCK, [channel_id])
        ended = _end(_open(channel_id, code), now)
        if ended:
            lanes.refresh_figures(channel_id)
            lanes.call_back(channel_id)
    return bool(ended)


def end_those_over(*, now: datetime) -> int:
    """End by their own time; how many. The policy knew already, this tells the others."""
    over = Restriction.unscoped.filter(ended_at=None, ends_at__lte=now).values_list("channel_id", flat=True)
    done = 0
    for channel_id in set(over):
        with transaction.atomic():
            db.rows(_LOCK, [channel_id])
            done += _end(Restriction.unscoped.filter(channel=channel_id, ended_at=None, ends_at__lte=now), now)
            lanes.refresh_figures(channel_id)
            lanes.call_back(channel_id)
    return done


def _open(channel_id: UUID, code: str) -> QuerySet[Restriction]:
    return Restriction.unscoped.filter(channel=channel_id, code=code, ended_at=None)


def _end(rows: QuerySet[Restriction], now: datetime) -> int:
    ended = list(rows)
    for row in ended:
        row.ended_at = now if row.ends_at is None else min(row.ends_at, now)
        row.save(update_fields=["ended_at"])
        _tell(row.organization_id, row.channel_id, row.code, "free", now)
    return len(ended)


def _tell(organization_id: UUID, channel_id: UUID, code: str, to: str, now: datetime) -> None:
    events.record(
        organization_id=organization_id,
        type="channel.status",
        subject=ids.encode(ids.CHANNEL, channel_id),
        actor=events.SYSTEM,
        now=now,
        data={"restriction": str(code), "to": to},
    )
