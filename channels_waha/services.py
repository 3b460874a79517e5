"""Writes of session rows. What asks WAHA is in channels_waha.lifecycle; nothing here touches the network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from channels_waha import values
from channels_waha.models import ChannelSession
from events import services as events
from events.services import Actor
from messaging import services as messaging
from messaging.models import Channel
from permissions import ids
from permissions.models import Organization

Status = ChannelSession.Status
KIND = "waha"
PHONE_CHANGED = "phone_changed"
# Where the phone was another one before: kept until a person confirms the new one.
PHONE_BEFORE = "phone_before"


def create_session(*, organization: Organization, display_name: str, actor: Actor, now: datetime) -> ChannelSession:
    """A number that is still to be connected: its channel, its lane, its session row. Nothing is asked of WAHA."""
    with transaction.atomic():
        # Numbers within an organization are given one after the other.
        organization = Organization.objects.select_for_update().get(pk=organization.pk)
        channel = messaging.create_channel(organization=organization, kind=KIND, name=display_name, now=now)
        session = ChannelSession.objects.create(
            organization=organization,
            channel=channel,
            session_name=_next_name(organization),
            display_name=display_name,
            status_changed_at=now,
            created_at=now,
        )
        record(session, "channel_session.created", actor=actor, now=now, data={"session_name": session.session_name})
    return session


def apply_status(*, channel_id: UUID, status: str, me: Mapping[str, Any] | None, at: datetime, now: datetime) -> bool:
    """Follow a ``session.status`` webhook; False where it is older than what is known.

    ``at``: when WAHA told it, by its own clock. ``me``: WAHA's account object; its ``id`` counts in WORKING alone.
    """
    with transaction.atomic():
        session = ChannelSession.unscoped.select_for_update(of=("self",)).get(channel_id=channel_id)
        if session.status_told_at is not None and at < session.status_told_at:
            return False
        session.status_told_at = at
        _write(session, status, me, now)
    return True


def write_truth(
    *, session_id: UUID, status: str, me: Mapping[str, Any] | None, asked_at: datetime, now: datetime
) -> ChannelSession:
    """Follow what WAHA says when it is asked; the row as it is then.

    A change that a webhook brought since ``asked_at`` (our clock) is newer than the answer and stays.
    """
    with transaction.atomic():
        session = ChannelSession.unscoped.select_for_update(of=("self",)).get(pk=session_id)
        session.last_health_check_at = now
        if session.status_changed_at > asked_at:
            session.save(update_fields=["last_health_check_at"])
        else:
            if not _is(session.status, status):
                # Retries of older webhooks must not undo it.
                session.status_told_at = asked_at
            _write(session, status, me, now)
    return session


def set_wanted(session: ChannelSession, *, wanted: bool) -> None:
    """What was asked for through us; committed before WAHA is asked, so that sync-sessions can take it up."""
    ChannelSession.unscoped.filter(pk=session.pk).update(is_wanted=wanted)
    session.is_wanted = wanted


def set_server(session: ChannelSession, *, version: str, engine: str) -> None:
    """The server as it describes itself; words that are empty change nothing."""
    told = {"server_version": version, "engine": engine}
    changed = {name: value for name, value in told.items() if value and getattr(session, name) != value}
    if changed:
        ChannelSession.unscoped.filter(pk=session.pk).update(**changed)


def confirm_phone(*, session_id: UUID, actor: Actor, now: datetime) -> None:
    """A person confirms that the number is now another one; its lane goes on."""
    with transaction.atomic():
        session = ChannelSession.unscoped.select_for_update(of=("self",)).get(pk=session_id)
        before = session.metadata.pop(PHONE_BEFORE, None)
        if before is None:
            return
        session.save(update_fields=["metadata"])
        messaging.remove_hold(session.channel_id, PHONE_CHANGED, now=now)
        data = {"from": before, "to": session.phone_number}
        record(session, "channel_session.phone_confirmed", actor=actor, now=now, data=data)


def record(
    session: ChannelSession, kind: str, *, actor: Actor, now: datetime, data: dict[str, str] | None = None
) -> None:
    """An event about a session, under its channel's id."""
    events.record(
        organization_id=session.organization_id,
        type=kind,
        subject=ids.encode(ids.CHANNEL, session.channel_id),
        actor=actor,
        now=now,
        data=data,
    )


def _write(session: ChannelSession, status: str, me: Mapping[str, Any] | None, now: datetime) -> None:
    """Write a status that is known to be the newest, with all that follows from it. Needs the row's lock."""
    if not _is(session.status, status):
        change = {"session_name": session.session_name, "from": session.status, "to": status}
        session.status, session.status_changed_at = _stored(status), now
        record(session, "channel_session.status_changed", actor=events.SYSTEM, now=now, data=change)
    works = _is(status, Status.WORKING)
    if works:
        # Before the lane is opened: another account's lane opens held.
        _follow_phone(session, values.phone((me or {}).get("id")), now)
    session.save(
        update_fields=[
            "status",
            "status_changed_at",
            "status_told_at",
            "phone_number",
            "metadata",
            "last_health_check_at",
        ]
    )
    state = Channel.unscoped.values_list("state", flat=True).get(pk=session.channel_id)
    wanted = Channel.State.CONNECTED if works else Channel.State.DISCONNECTED
    if state not in {wanted, Channel.State.ARCHIVED}:
        messaging.set_connected(session.channel_id, connected=works, now=now)


def _follow_phone(session: ChannelSession, phone: str | None, now: datetime) -> None:
    """Take over the number of the account; another one than before holds the lane until a person confirms it."""
    if phone is None or phone == session.phone_number:
        return
    before = session.metadata.get(PHONE_BEFORE) or session.phone_number
    session.phone_number = phone
    if not before:
        return
    if phone == before:
        del session.metadata[PHONE_BEFORE]
        messaging.remove_hold(session.channel_id, PHONE_CHANGED, now=now)
    else:
        session.metadata[PHONE_BEFORE] = before
        messaging.add_hold(session.channel_id, PHONE_CHANGED, now=now)


def _is(status: str, other: str) -> bool:
    return status.casefold() == other.casefold()


def _stored(status: str) -> str:
    """A word that we know in its usual case; an unknown one as it came."""
    return status.upper() if status.upper() in Status.values else status


def _next_name(organization: Organization) -> str:
    """``<slug>_<n>``, n above every one ever given; a slug has no underscore, so that names split at the first."""
    names = ChannelSession.objects.of(organization).values_list("session_name", flat=True)
    numbers = [int(match[1]) for name in names if (match := re.fullmatch(r"[^_]+_(\d{1,9})", name))]
    number = max(numbers, default=0) + 1
    while ChannelSession.unscoped.filter(session_name=f"{organization.slug}_{number}").exists():
        number += 1
    return f"{organization.slug}_{number}"
