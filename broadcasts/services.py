"""Broadcasts: composed, launched, moved, completed. Each write locks the stream first and looks again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from audience.selectors import Audience, groups
from broadcasts import drafts, freezing
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast, Feed, Recipient
from broadcasts.refusals import InvalidTransition, Refused
from events import services as events
from events.services import Actor
from messaging import lanes, policy, ranks, streams
from messaging.faults import Point, reach
from messaging.models import Channel, Message, Stream
from permissions import ids
from permissions.models import ApiKey, Organization, User

log = logging.getLogger(__name__)

Status = Broadcast.Status

VALID_FOR = timedelta(days=7)
_AT_ONCE = 50


class PauseCode(StrEnum):
    """Why the machine paused a broadcast; a person's pause has none."""

    OWNER_WITHOUT_RIGHT = "owner_without_right"
    CHANNEL_ARCHIVED = "channel_archived"
    CHANNEL_IN_WARMUP = "channel_in_warmup"


def compose(
    *,
    organization: Organization,
    owner: User,
    draft: Draft,
    now: datetime,
    api_key: ApiKey | None = None,
    idempotency_key: str | None = None,
    audience: Audience = groups,
) -> Broadcast:
    """Freeze the audience and queue the broadcast, in one transaction.

    Raises Refused and its kinds NotFound and Forbidden, each with the contract's code.
    """
    with transaction.atomic():
        meaning = drafts.read(draft, organization=organization, owner=owner, audience=audience, now=now)
        _require_fresh(organization, owner, idempotency_key)
        broadcast = Broadcast.objects.create(
            organization=organization,
            owner=owner,
            api_key=api_key,
            group=meaning.group,
            stream=streams.create(organization_id=organization.pk, expires_at=None, now=now),
            name=draft.name,
            status=Status.QUEUED,
            language=draft.language,
            variations=[template.source for template in meaning.content.templates],
            variables=dict(draft.variables),
            idempotency_key=idempotency_key,
            created_at=now,
        )
        Feed.unscoped.bulk_create(
            Feed(organization=organization, broadcast=broadcast, channel=channel, feed_at=None)
            for channel in meaning.channels
        )
        freezing.freeze(broadcast, meaning.content, audience, [channel.pk for channel in meaning.channels])
        if not _pending(broadcast).exists():
            raise Refused("empty_audience", _("Nobody in the group can be reached."), "group_id")
        _record(broadcast, "broadcast.created", events.author(owner, api_key), now, {"to": Status.QUEUED})
        transaction.on_commit(partial(reach, Point.AFTER_FREEZE))
    return broadcast


def launch_due(*, now: datetime) -> int:
    """Begin queued broadcasts, or pause those that lost the right to meanwhile; how many began."""
    queued = Broadcast.unscoped.filter(status=Status.QUEUED).order_by("created_at").values_list("pk", "stream_id")
    return each(queued[:_AT_ONCE], partial(_launch, now=now))


def complete_finished(*, now: datetime) -> int:
    """Complete broadcasts of which nothing can leave any more, and end those past their validity; how many."""
    pending = Recipient.unscoped.filter(broadcast=OuterRef("pk"), state=Recipient.State.PENDING)
    unfinished = Message.unscoped.filter(stream=OuterRef("stream_id"), status__in=ranks.UNFINISHED)
    done = Q(~Exists(pending), ~Exists(unfinished))
    over = Q(Exists(pending), expires_at__lte=now)
    due = Broadcast.unscoped.filter(done | over, status__in=[Status.SENDING, Status.PAUSED]).order_by("created_at")
    return each(due.values_list("pk", "stream_id")[:_AT_ONCE], partial(_finish, now=now))


def pause_unentitled(*, now: datetime) -> int:
    """Pause running broadcasts whose owner lost the right, those wholly fed included; how many."""
    running = Broadcast.unscoped.filter(status=Status.SENDING).select_related("owner", "group")
    lost = [broadcast for broadcast in running if not drafts.may_send(broadcast.owner, broadcast.group)]
    return each([(broadcast.pk, broadcast.stream_id) for broadcast in lost], partial(_pause_unentitled, now=now))


def each(rows: Iterable[tuple[UUID, UUID]], work: Callable[[UUID, UUID], int]) -> int:
    """Do one broadcast after the other; the sum of what ``work`` says.

    The fault of one stops no other: it is tried again at the next turn. A database that is away stops all.
    """
    done = 0
    for broadcast_id, stream_id in rows:
        try:
            done += work(broadcast_id, stream_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("broadcast %s stays for the next turn", broadcast_id)
    return done


def pause(*, broadcast: Broadcast, actor: Actor, now: datetime) -> Broadcast:
    """Stop it where it stands; at most one message per number is still leaving. Raises InvalidTransition."""
    with transaction.atomic():
        stream, current = locked(broadcast.pk, broadcast.stream_id)
        _require(current, "pause", {Status.QUEUED, Status.SENDING})
        pause_locked(stream, current, code="", actor=actor, now=now)
    return current


def resume(*, broadcast: Broadcast, actor: Actor, now: datetime) -> Broadcast:
    """Go on where it stopped; rights are judged again before anything more is fed. Raises InvalidTransition."""
    with transaction.atomic():
        stream, current = locked(broadcast.pk, broadcast.stream_id)
        _require(current, "resume", {Status.PAUSED})
        streams.resume(stream)
        current.pause_code = ""
        if current.started_at is not None:
            _wake_feeds(current, now)
        to = Status.SENDING if current.started_at else Status.QUEUED
        _move(current, to, "broadcast.resumed", actor, now)
    return current


def cancel(*, broadcast: Broadcast, actor: Actor, now: datetime) -> Broadcast:
    """End it: what is pending or queued never leaves. Raises InvalidTransition."""
    with transaction.atomic():
        stream, current = locked(broadcast.pk, broadcast.stream_id)
        open_states = {Status.QUEUED, Status.SCHEDULED, Status.PENDING_REVIEW, Status.SENDING, Status.PAUSED}
        _require(current, "cancel", open_states)
        streams.cancel(stream)
        _pending(current).update(state=Recipient.State.CANCELED, code="broadcast_canceled", updated_at=now)
        _silence_feeds(current)
        current.finished_at = now
        _move(current, Status.CANCELED, "broadcast.canceled", actor, now)
    return current


def locked(broadcast_id: UUID, stream_id: UUID) -> tuple[Stream, Broadcast]:
    """The stream's row locked, then the broadcast as it is now: the first step of whoever changes either."""
    stream = streams.lock(stream_id)
    return stream, Broadcast.unscoped.select_related("group", "owner").get(pk=broadcast_id)


def tried(broadcast_id: UUID, stream_id: UUID) -> tuple[Stream, Broadcast] | None:
    """The same for the dispatcher's sweeps, which come round again: None where somebody else is at it."""
    stream = streams.try_lock(stream_id)
    if stream is None:
        return None
    return stream, Broadcast.unscoped.select_related("group", "owner").get(pk=broadcast_id)


def pause_locked(stream: Stream, broadcast: Broadcast, *, code: str, actor: Actor, now: datetime) -> None:
    """Pause a broadcast whose stream is locked; ``code`` is a PauseCode, or empty for a person's pause."""
    streams.pause(stream)
    _silence_feeds(broadcast)
    broadcast.pause_code = code
    _move(broadcast, Status.PAUSED, "broadcast.paused", actor, now)


@transaction.atomic
def _launch(broadcast_id: UUID, stream_id: UUID, *, now: datetime) -> bool:
    found = tried(broadcast_id, stream_id)
    if found is None:
        return False
    stream, broadcast = found
    if broadcast.status != Status.QUEUED:
        return False
    if (code := _obstacle(broadcast, now)) is not None:
        pause_locked(stream, broadcast, code=code, actor=events.SYSTEM, now=now)
        return False
    broadcast.started_at = now
    broadcast.expires_at = now + VALID_FOR
    streams.start_clock(stream, broadcast.expires_at)
    _wake_feeds(broadcast, now)
    _move(broadcast, Status.SENDING, "broadcast.started", events.SYSTEM, now)
    return True


@transaction.atomic
def _pause_unentitled(broadcast_id: UUID, stream_id: UUID, *, now: datetime) -> bool:
    found = tried(broadcast_id, stream_id)
    if found is None:
        return False
    stream, broadcast = found
    if broadcast.status != Status.SENDING or drafts.may_send(broadcast.owner, broadcast.group):
        return False
    pause_locked(stream, broadcast, code=PauseCode.OWNER_WITHOUT_RIGHT, actor=events.SYSTEM, now=now)
    return True


def _obstacle(broadcast: Broadcast, now: datetime) -> PauseCode | None:
    """What has changed since the POST and forbids the launch."""
    if not drafts.may_send(broadcast.owner, broadcast.group):
        return PauseCode.OWNER_WITHOUT_RIGHT
    for channel in broadcast.channels.select_related("organization"):
        if channel.state == Channel.State.ARCHIVED:
            return PauseCode.CHANNEL_ARCHIVED
        if policy.broadcasts_from(lanes.facts_of(channel), now) is not None:
            return PauseCode.CHANNEL_IN_WARMUP
    return None


@transaction.atomic
def _finish(broadcast_id: UUID, stream_id: UUID, *, now: datetime) -> bool:
    found = tried(broadcast_id, stream_id)
    if found is None:
        return False
    stream, broadcast = found
    if broadcast.status not in {Status.SENDING, Status.PAUSED}:
        return False
    if broadcast.expires_at is not None and broadcast.expires_at <= now:
        _pending(broadcast).update(state=Recipient.State.EXPIRED, code="expired", updated_at=now)
    if _pending(broadcast).exists() or streams.has_unfinished(stream.pk):
        return False
    streams.end(stream)
    _silence_feeds(broadcast)
    broadcast.finished_at = now
    _move(broadcast, Status.COMPLETED, "broadcast.completed", events.SYSTEM, now)
    return True


def _require_fresh(organization: Organization, owner: User, idempotency_key: str | None) -> None:
    # The answer to a repeated key is the API's to give; this stands where that record was lost.
    mine = Broadcast.objects.of(organization).filter(owner=owner, idempotency_key=idempotency_key)
    if idempotency_key is not None and mine.exists():
        raise Refused("idempotency_key_reused", _("This Idempotency-Key was used for another broadcast."))


def _require(broadcast: Broadcast, move: str, allowed: Collection[str]) -> None:
    if broadcast.status not in allowed:
        raise InvalidTransition(move, broadcast.status)


def _pending(broadcast: Broadcast) -> QuerySet[Recipient]:
    return Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast, state=Recipient.State.PENDING)


def _wake_feeds(broadcast: Broadcast, now: datetime) -> None:
    Feed.objects.of(broadcast.organization_id).filter(broadcast=broadcast).update(feed_at=now)


def _silence_feeds(broadcast: Broadcast) -> None:
    Feed.objects.of(broadcast.organization_id).filter(broadcast=broadcast).update(feed_at=None)


def _move(broadcast: Broadcast, to: Broadcast.Status, event: str, actor: Actor, now: datetime) -> None:
    change = {"from": broadcast.status, "to": to.value}
    if broadcast.pause_code:
        change["code"] = broadcast.pause_code
    broadcast.status = to
    broadcast.save(update_fields=["status", "pause_code", "started_at", "finished_at", "expires_at", "updated_at"])
    _record(broadcast, event, actor, now, change)


def _record(broadcast: Broadcast, event: str, actor: Actor, now: datetime, data: dict[str, str]) -> None:
    events.record(
        organization_id=broadcast.organization_id,
        type=event,
        subject=ids.encode(ids.BROADCAST, broadcast.pk),
        actor=actor,
        now=now,
        data=data,
    )
