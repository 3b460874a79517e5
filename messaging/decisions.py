"""What a person decides about one message: to have it sent again, or to take it for sent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from events import services as events
from events.services import Actor
from messaging import db, lanes, streams
from messaging.models import Message, Stream
from permissions import ids

Status = Message.Status
# What a person asks for anew has so long where its own end has passed.
RETRY_FOR = timedelta(hours=24)
RETRIED_IN = (Status.FAILED, Status.IN_DOUBT)

_LOCK_LANE = "SELECT 1 FROM lanes WHERE channel_id = %s FOR UPDATE"
# The attempts stay counted and in the history. The provider's id stays for the next attempt to leave under.
_AGAIN = """
UPDATE messages SET status = 'queued', faults = 0, lease = NULL, not_before = NULL, waiting_code = '',
    waiting_until = NULL, error_code = '', error_detail = '', error_sent = '', updated_at = clock_timestamp(),
    turn = coalesce(%(turn)s, turn), expires_at = CASE WHEN expires_at <= %(now)s THEN %(new_end)s ELSE expires_at END,
    doubted = doubted OR %(doubt)s, history = CASE WHEN %(doubt)s THEN history || jsonb_build_object(
        'attempt', attempt, 'decision', 'send_again', 'code', error_code, 'at', %(now)s::timestamptz)
      ELSE history END
WHERE id = %(id)s
"""
_ASSUME = """
UPDATE messages SET status = 'sent', sent_at = coalesce(sent_at, sending_at), error_code = '', error_detail = '',
    error_sent = '', doubted = false, updated_at = clock_timestamp()
WHERE id = %s
"""


class DuplicateRisk(Exception):
    """It may have been sent: the person has to accept that it may arrive twice."""


class Undecidable(Exception):
    """The message is in a state in which there is nothing to decide. ``status``: which."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class OwnerRefuses(Exception):
    """The room above does not let its stream go on, for want of a right. ``detail``: in words."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


class Owner(Protocol):
    """The room above that made the streams (settings.STREAM_OWNER)."""

    def go_on(self, *, stream: Stream, actor: Actor, now: datetime) -> None:
        """A message of the stream, which is locked, is sent again: follow, or refuse by raising."""
        ...


def send_again(message_id: UUID, *, accepts_duplicate: bool, actor: Actor, now: datetime) -> None:
    """Queue a failed message or one in doubt once more. Audited: ``message.retried``.

    A completed stream runs again. Raises Undecidable, DuplicateRisk where it may have left and that is not accepted,
    streams.StreamEnded under a canceled stream, and what the stream's owner refuses with.
    """
    with transaction.atomic():
        message, stream = _locked(message_id)
        if message.status not in RETRIED_IN:
            raise Undecidable(message.status)
        in_doubt = message.error_sent != Message.Sent.NO
        if in_doubt and not accepts_duplicate:
            raise DuplicateRisk(DuplicateRisk.__doc__)
        turn = None
        if stream is not None:
            streams.reopen(stream, new_end=now + RETRY_FOR, now=now)
            owner: Owner = import_string(settings.STREAM_OWNER)()
            owner.go_on(stream=stream, actor=actor, now=now)
            turn = streams.next_turn(stream, message.channel_id)
        named = {"id": message_id, "turn": turn, "now": now, "new_end": now + RETRY_FOR, "doubt": in_doubt}
        db.rows(_AGAIN, named)
        lanes.wake([message.channel_id])
        _record(message, "message.retried", Status.QUEUED, actor, now)


def assume_sent(message_id: UUID, *, actor: Actor, now: datetime) -> None:
    """Take a message in doubt for sent; later acks still count. Audited: ``message.assumed_sent``.

    Raises Undecidable for any other.
    """
    with transaction.atomic():
        message, _stream = _locked(message_id)
        if message.status != Status.IN_DOUBT:
            raise Undecidable(message.status)
        db.rows(_ASSUME, [message_id])
        _record(message, "message.assumed_sent", Status.SENT, actor, now)


def _locked(message_id: UUID) -> tuple[Message, Stream | None]:
    """The message as it is now, with its stream, both locked (with the lane between them, in the order of locks)."""
    channel_id, stream_id = Message.unscoped.values_list("channel_id", "stream_id").get(pk=message_id)
    stream = streams.lock(stream_id) if stream_id is not None else None
    db.rows(_LOCK_LANE, [channel_id])
    return Message.unscoped.select_for_update(of=("self",)).get(pk=message_id), stream


def _record(message: Message, kind: str, to: str, actor: Actor, now: datetime) -> None:
    events.record(
        organization_id=message.organization_id,
        type=kind,
        subject=ids.encode(ids.MESSAGE, message.pk),
        actor=actor,
        now=now,
        data={"from": message.status, "to": to, "attempt": message.attempt},
    )
