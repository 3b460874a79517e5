"""Broadcasts: composed, launched, moved, completed. Each write locks the stream first and looks again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from audience.selectors import Audience, groups
from broadcasts import drafts, freezing, review, spreading
from broadcasts.codes import FailureCode, PauseCode
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast, Feed, Recipient
from broadcasts.models.broadcast import VALID_FOR
from broadcasts.refusals import Forbidden, InvalidTransition, Refused
from events import services as events
from events.services import Actor
from messaging import decisions, history, policy, ranks, streams
from messaging.faults import Point, reach
from messaging.models import Channel, Message, Stream
from permissions import ids
from permissions.models import ApiKey, Organization, User

log = logging.getLogger(__name__)

Status = Broadcast.Status

# A retry is worth its while even where the broadcast's own end has passed (design: engine, section 2).
OPEN = (Status.QUEUED, Status.SCHEDULED, Status.PENDING_REVIEW, Status.SENDING, Status.PAUSED)
PAUSED_FROM = (Status.QUEUED, Status.SCHEDULED, Status.SENDING)
RETRIED_IN = (Status.SENDING, Status.PAUSED, Status.COMPLETED)
_AT_ONCE = 50


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
    """Freeze the audience; queue the broadcast, schedule it or lay it before an admin. One transaction.

    Raises Refused and its kinds NotFound and Forbidden, each with the contract's code.
    """
    with transaction.atomic():
        _require_fresh(organization, owner, idempotency_key)
        broadcast, _channels = freeze(
            organization=organization,
            owner=owner,
            draft=draft,
            now=now,
            api_key=api_key,
            idempotency_key=idempotency_key,
            audience=audience,
        )
        if not _pending(broadcast).exists():
            raise Refused("empty_audience", _("Nobody in the group can be reached."), "group_id")
        _record(broadcast, "broadcast.created", events.author(owner, api_key), now, {"to": broadcast.status})
        transaction.on_commit(partial(reach, Point.AFTER_FREEZE))
    return broadcast


def freeze(
    *,
    organization: Organization,
    owner: User,
    draft: Draft,
    now: datetime,
    api_key: ApiKey | None = None,
    idempotency_key: str | None = None,
    audience: Audience = groups,
) -> tuple[Broadcast, Sequence[Channel]]:
    """The rows of a new broadcast and its numbers, in the caller's transaction; nobody may be left in it.

    Raises as ``compose``.
    """
    meaning = drafts.read(draft, organization=organization, owner=owner, audience=audience, now=now)
    broadcast = Broadcast.objects.create(
        organization=organization,
        owner=owner,
        api_key=api_key,
        group=meaning.group,
        stream=streams.create(organization_id=organization.pk, expires_at=None, now=now),
        name=draft.name,
        status=Status.SCHEDULED if draft.scheduled_at else Status.QUEUED,
        language=draft.language,
        variations=[template.source for template in meaning.content.templates],
        variables=dict(draft.variables),
        idempotency_key=idempotency_key,
        created_at=now,
        scheduled_at=draft.scheduled_at,
        expires_at=draft.expires_at,
    )
    Feed.unscoped.bulk_create(
        Feed(organization=organization, broadcast=broadcast, channel=channel, feed_at=None)
        for channel in meaning.channels
    )
    numbers = [channel.pk for channel in meaning.channels]
    freezing.freeze(broadcast, meaning.content, audience, numbers)
    spreading.keep_known_numbers(broadcast, numbers)
    if review.is_needed(broadcast, meaning.channels, _pending(broadcast).count()):
        broadcast.status = Status.PENDING_REVIEW
        broadcast.save(update_fields=["status"])
    return broadcast, meaning.channels


def launch_due(*, now: datetime) -> int:
    """Begin what is queued or whose time has come, or pause what lost the right to meanwhile; how many began."""
    due = Q(status=Status.QUEUED) | Q(status=Status.SCHEDULED, scheduled_at__lte=now)
    rows = Broadcast.unscoped.filter(due).order_by("created_at").values_list("pk", "stream_id")
    return each(rows[:_AT_ONCE], partial(_launch, now=now))


def complete_finished(*, now: datetime) -> int:
    """Complete broadcasts of which nothing can leave any more, and end those past their validity; how many."""
    ours = {"organization": OuterRef("organization")}
    pending = Recipient.unscoped.filter(broadcast=OuterRef("pk"), state=Recipient.State.PENDING, **ours)
    unfinished = Message.unscoped.filter(stream=OuterRef("stream_id"), status__in=ranks.UNFINISHED, **ours)
    done = Q(~Exists(pending), ~Exists(unfinished))
    over = Q(Exists(pending), expires_at__lte=now)
    due = Broadcast.unscoped.filter(done | over, status__in=OPEN).order_by("created_at")
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
        _require(current, "pause", PAUSED_FROM)
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
        _move(current, _next_of(current, now), "broadcast.resumed", actor, now)
    return current


def cancel(*, broadcast: Broadcast, actor: Actor, now: datetime) -> Broadcast:
    """End it: what is pending or queued never leaves. Raises InvalidTransition."""
    with transaction.atomic():
        stream, current = locked(broadcast.pk, broadcast.stream_id)
        _require(current, "cancel", OPEN)
        _end(stream, current, "broadcast_canceled", now)
        _move(current, Status.CANCELED, "broadcast.canceled", actor, now)
    return current


def approve(
    *, broadcast: Broadcast, approver: User, actor: Actor, now: datetime, confirmed: int | None = None
) -> Broadcast:
    """Let a broadcast that waits for review go. Audited: ``broadcast.approved`` with how many people it is.

    ``confirmed``: how many recipients the approver says it has. Raises Forbidden, InvalidTransition, Refused
    ``confirmation_required``.
    """
    with transaction.atomic():
        _stream, current = locked(broadcast.pk, broadcast.stream_id)
        review.require_reviewer(current, approver)
        _require(current, "approve", {Status.PENDING_REVIEW})
        number = _pending(current).count()
        review.require_confirmed(current, approver, number=number, confirmed=confirmed)
        _move(current, _next_of(current, now), "broadcast.approved", actor, now, recipients=number)
    return current


def retry_failed(*, broadcast: Broadcast, actor: Actor, now: datetime) -> Broadcast:
    """Queue again what failed and certainly was not sent; never what is in doubt. Audited: ``broadcast.retried``.

    A completed broadcast goes on, until decisions.RETRY_FOR from now where its end has passed; one with nothing to
    retry stays as it is. Raises InvalidTransition, and Forbidden where the owner lost the right to the group.
    """
    with transaction.atomic():
        stream, current = locked(broadcast.pk, broadcast.stream_id)
        _require_retryable(current)
        number = streams.retry_failed(stream, new_end=now + decisions.RETRY_FOR, now=now)
        if number:
            _go_on(stream, current, number, actor, now)
    return current


def follow_retry(*, stream: Stream, actor: Actor, now: datetime) -> None:
    """One message of a broadcast, whose stream is locked, is sent again. Audited and refused as ``retry_failed``."""
    current = Broadcast.unscoped.select_related("group", "owner").get(stream=stream)
    _require_retryable(current)
    _go_on(stream, current, 1, actor, now)


def _require_retryable(broadcast: Broadcast) -> None:
    _require(broadcast, "retry-failed", RETRIED_IN)
    if not drafts.may_send(broadcast.owner, broadcast.group):
        raise Forbidden("group_forbidden", _("The owner may not write to this group any more."))


def _go_on(stream: Stream, broadcast: Broadcast, number: int, actor: Actor, now: datetime) -> None:
    to = Status.PAUSED if broadcast.status == Status.PAUSED else Status.SENDING
    broadcast.expires_at, broadcast.finished_at = stream.expires_at, None
    _move(broadcast, to, "broadcast.retried", actor, now, messages=number)


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
    if not _is_due(broadcast, now):
        return False
    channels = list(broadcast.channels.select_related("organization"))
    if all(channel.state == Channel.State.ARCHIVED for channel in channels):
        _fail(stream, broadcast, FailureCode.CHANNEL_ARCHIVED, now)
        return False
    if (code := _obstacle(broadcast, channels, now)) is not None:
        pause_locked(stream, broadcast, code=code, actor=events.SYSTEM, now=now)
        return False
    broadcast.started_at = now
    broadcast.expires_at = broadcast.expires_at or now + VALID_FOR
    streams.start_clock(stream, broadcast.expires_at)
    _wake_feeds(broadcast, now)
    _move(broadcast, Status.SENDING, "broadcast.started", events.SYSTEM, now)
    return True


def _is_due(broadcast: Broadcast, now: datetime) -> bool:
    if _is_over(broadcast, now):
        # Completion ends it.
        return False
    comes_later = broadcast.scheduled_at is not None and broadcast.scheduled_at > now
    return broadcast.status == Status.QUEUED or (broadcast.status == Status.SCHEDULED and not comes_later)


def _is_over(broadcast: Broadcast, now: datetime) -> bool:
    return broadcast.expires_at is not None and broadcast.expires_at <= now


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


def _obstacle(broadcast: Broadcast, channels: Iterable[Channel], now: datetime) -> PauseCode | None:
    """What has changed since the POST and forbids the launch."""
    if not drafts.may_send(broadcast.owner, broadcast.group):
        return PauseCode.OWNER_WITHOUT_RIGHT
    for channel in channels:
        if channel.state == Channel.State.ARCHIVED:
            return PauseCode.CHANNEL_ARCHIVED
        barred_by, _until = policy.barred(history.facts_of(channel), now)
        if barred_by:
            return PauseCode(barred_by)
    if broadcast.status == Status.SCHEDULED and broadcast.scheduled_at is not None:
        # "Good morning" in the afternoon is for a person to decide, who resumes it.
        lateness = now - broadcast.scheduled_at
        return PauseCode.START_MISSED if lateness > timedelta(hours=settings.LATE_START_HOURS) else None
    return None


@transaction.atomic
def _finish(broadcast_id: UUID, stream_id: UUID, *, now: datetime) -> bool:
    found = tried(broadcast_id, stream_id)
    if found is None:
        return False
    stream, broadcast = found
    if broadcast.status not in OPEN:
        return False
    is_over = _is_over(broadcast, now)
    if is_over:
        _pending(broadcast).update(state=Recipient.State.EXPIRED, code="expired", updated_at=now)
    if _pending(broadcast).exists() or streams.has_unfinished(stream):
        return False
    if not streams.may_have_sent(stream):
        _fail(stream, broadcast, FailureCode.EXPIRED if is_over else FailureCode.NOBODY_LEFT, now)
        return True
    streams.end(stream)
    _silence_feeds(broadcast)
    broadcast.finished_at = now
    _move(broadcast, Status.COMPLETED, "broadcast.completed", events.SYSTEM, now)
    return True


def _fail(stream: Stream, broadcast: Broadcast, code: FailureCode, now: datetime) -> None:
    """Nothing of it was sent, and nothing can be."""
    _end(stream, broadcast, code, now)
    broadcast.failure_code = code
    _move(broadcast, Status.FAILED, "broadcast.failed", events.SYSTEM, now, code=code.value)


def _end(stream: Stream, broadcast: Broadcast, code: str, now: datetime) -> None:
    """For good: what has not left never does."""
    streams.cancel(stream)
    _pending(broadcast).update(state=Recipient.State.CANCELED, code=code, updated_at=now)
    _silence_feeds(broadcast)
    broadcast.finished_at = now
    broadcast.pause_code = ""


def _next_of(broadcast: Broadcast, now: datetime) -> Broadcast.Status:
    """Where a broadcast goes on that nothing holds any more."""
    if broadcast.started_at is not None:
        return Status.SENDING
    if broadcast.scheduled_at is not None and broadcast.scheduled_at > now:
        return Status.SCHEDULED
    return Status.QUEUED


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


def _move(
    broadcast: Broadcast, to: Broadcast.Status, event: str, actor: Actor, now: datetime, **data: str | int
) -> None:
    change: dict[str, str | int] = {"from": broadcast.status, "to": to.value, **data}
    if broadcast.pause_code:
        change["code"] = broadcast.pause_code
    broadcast.status = to
    broadcast.save(
        update_fields=[
            "status", "pause_code", "failure_code", "started_at", "finished_at", "expires_at", "updated_at",
        ]
    )  # fmt: skip
    _record(broadcast, event, actor, now, change)


def _record(broadcast: Broadcast, event: str, actor: Actor, now: datetime, data: Mapping[str, str | int]) -> None:
    events.record(
        organization_id=broadcast.organization_id,
        type=event,
        subject=ids.encode(ids.BROADCAST, broadcast.pk),
        actor=actor,
        now=now,
        data=dict(data),
    )
