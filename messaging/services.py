"""What other rooms may do with channels, lanes and single messages."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from uuid import UUID

from django.db import transaction

from events import services as events
from events.services import Actor
from messaging import lanes, restrictions, rules
from messaging.limits import LoosensALimit
from messaging.models import Channel, Message, Restriction
from permissions import ids
from permissions.models import Organization, User

__all__ = [
    "LoosensALimit",
    "add_hold",
    "create_channel",
    "end_restriction",
    "queue_single",
    "record_hold",
    "remove_hold",
    "report_restriction",
    "set_age",
    "set_connected",
    "set_window",
]


def create_channel(*, organization: Organization, kind: str, name: str, now: datetime) -> Channel:
    """A sender number that has not connected yet, and its lane. The first of its kind is the default."""
    with transaction.atomic():
        # Serialises "the first one is the default" within the organization.
        Organization.objects.select_for_update().get(pk=organization.pk)
        is_first = not Channel.objects.of(organization).filter(kind=kind, is_default=True).exists()
        channel = Channel.objects.create(
            organization=organization, kind=kind, name=name, is_default=is_first, created_at=now
        )
        lanes.create(channel.pk)
    return channel


def set_connected(channel_id: UUID, *, connected: bool, now: datetime) -> None:
    """Follow a channel room's change of state, in its transaction. Locks the lane, wakes it on connection."""
    with transaction.atomic():
        channel = Channel.unscoped.select_for_update().get(pk=channel_id)
        channel.state = Channel.State.CONNECTED if connected else Channel.State.DISCONNECTED
        if connected and channel.first_connected_at is None:
            channel.first_connected_at = now
        channel.save(update_fields=["state", "first_connected_at"])
        lanes.set_connected(channel_id, connected=connected)
        lanes.refresh_figures(channel_id)


def add_hold(channel_id: UUID, code: str, *, now: datetime) -> None:
    """Stop a lane until the hold is removed. Messages stay queued and say the code."""
    if lanes.set_hold(channel_id, code, on=True):
        record_hold(channel_id, code, now=now)


def record_hold(channel_id: UUID, code: str, *, now: datetime) -> None:
    """Tell that a lane is held, and by what."""
    _record(channel_id, "channel.status", events.SYSTEM, now, {"hold": code, "to": "held"})


def remove_hold(channel_id: UUID, code: str, *, now: datetime) -> None:
    """Let a lane go on, as far as this hold is concerned."""
    if lanes.set_hold(channel_id, code, on=False):
        _record(channel_id, "channel.status", events.SYSTEM, now, {"hold": code, "to": "free"})


def report_restriction(
    channel_id: UUID, code: Restriction.Code, *, now: datetime, ends_at: datetime | None = None
) -> bool:
    """WhatsApp restricts the number (error 463, a lock, a cap …), or its session was lost in mid-run.

    Until it ends (``ends_at``, or ``end_restriction``) the lane writes to nobody new; then it goes at 10 %, 30 %,
    100 % of its pace. Messages stay queued. Told once: ``channel.status``. Whether it was new.
    """
    return restrictions.report(channel_id, code, now=now, ends_at=ends_at)


def end_restriction(channel_id: UUID, code: Restriction.Code, *, now: datetime) -> bool:
    """The signal is over; whether it held. The lane's ramp begins."""
    return restrictions.end(channel_id, code, now=now)


def set_age(channel_id: UUID, *, since: date, reason: str, by: User, now: datetime) -> None:
    """Declare that a number is in use since an older day. Audited: ``limit.loosened``."""
    _require_super_admin(by, reason)
    with transaction.atomic():
        channel = Channel.unscoped.select_for_update().get(pk=channel_id)
        before, channel.in_use_since = channel.in_use_since, since
        channel.save(update_fields=["in_use_since"])
        lanes.refresh_figures(channel_id)
        change = {"limit": "in_use_since", "from": _text(before), "to": _text(since), "reason": reason}
        _record(channel_id, "limit.loosened", events.user(by), now, change)


def set_window(channel_id: UUID, *, opens: time, closes: time, reason: str, by: User, now: datetime) -> None:
    """Override a channel's hours; equal times mean all day long. Audited: ``limit.loosened``."""
    _require_super_admin(by, reason)
    with transaction.atomic():
        channel = Channel.unscoped.select_for_update().get(pk=channel_id)
        before = f"{_text(channel.window_opens)}–{_text(channel.window_closes)}"
        channel.window_opens, channel.window_closes = opens, closes
        channel.save(update_fields=["window_opens", "window_closes"])
        lanes.refresh_figures(channel_id)
        lanes.wake([channel_id])
        change = {"limit": "window", "from": before, "to": f"{opens}–{closes}", "reason": reason}
        _record(channel_id, "limit.loosened", events.user(by), now, change)


def queue_single(
    *,
    channel: Channel,
    address: str,
    text: str,
    priority: Message.Priority,
    now: datetime,
    contact_id: UUID | None = None,
    expires_at: datetime | None = None,
) -> Message:
    """Queue one message outside of any broadcast; its lane is woken in the same transaction.

    An automatic one is no use after a day, unless ``expires_at`` says otherwise; what a person writes waits.
    """
    human = priority == Message.Priority.HUMAN
    with transaction.atomic():
        message = Message.objects.create(
            organization_id=channel.organization_id,
            channel=channel,
            contact_id=contact_id,
            direction=Message.Direction.OUT,
            origin=Message.Origin.CONSOLE if human else Message.Origin.API,
            address=address,
            text=text,
            status=Message.Status.QUEUED,
            priority=priority,
            # First come, first served, by the microsecond.
            position=int(now.timestamp() * 1_000_000),
            created_at=now,
            updated_at=now,
            expires_at=expires_at if expires_at or human else now + timedelta(seconds=rules.SINGLE_VALID_SECONDS),
        )
        lanes.wake([channel.pk])
    return message


def _require_super_admin(by: User, reason: str) -> None:
    if not by.is_superuser or not reason.strip():
        raise LoosensALimit


def _record(channel_id: UUID, kind: str, actor: Actor, now: datetime, data: dict[str, str]) -> None:
    organization_id = Channel.unscoped.values_list("organization_id", flat=True).get(pk=channel_id)
    events.record(
        organization_id=organization_id,
        type=kind,
        subject=ids.encode(ids.CHANNEL, channel_id),
        actor=actor,
        now=now,
        data=data,
    )


def _text(value: date | time | None) -> str:
    return "" if value is None else value.isoformat()
