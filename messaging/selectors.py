"""What messages wait for: the gate's own answer, were it asked now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from django.conf import settings

from messaging import codes, db, history, policy, verdicts
from messaging.codes import WaitingCode
from messaging.models import Channel, Lane, Message, Stream
from messaging.policy import Facts, Figures
from messaging.verdicts import Case, History, Judgement, MessageNow, PersonNow, StreamNow, Verdict

Status = Message.Status

# Whether a person ever wrote to the organization, or may have got a message of it (SQL: engine_judge).
TALKED = """
EXISTS (SELECT 1 FROM messages other WHERE other.contact_id = {contact}
  AND (other.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt', 'received')
       OR other.status = 'failed' AND other.error_sent = 'maybe'))
"""
# What is queued has not left, so it needs no exception for itself.
_NEW = f"""
SELECT m.id FROM messages m
WHERE m.id = ANY (%s) AND m.contact_id IS NOT NULL AND NOT {TALKED.format(contact="m.contact_id")}
"""  # noqa: S608 - columns named in this room
_FIGURES = tuple(field.name for field in fields(Figures))


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why it does not leave now, and until when; None where only an event can tell."""

    code: WaitingCode
    until: datetime | None = None


def waiting_for(message: Message, *, now: datetime) -> Waiting | None:
    """Why a queued message does not leave now; None where nothing holds it, or it is queued no more."""
    return waits([message], now=now).get(message.pk)


def waits(messages: Iterable[Message], *, now: datetime) -> dict[UUID, Waiting]:
    """The same of several, by id, without those that nothing holds; as many queries for one as for all."""
    queued = {each.pk: each for each in messages if each.status in {Status.QUEUED, Status.CLAIMED}}
    if not queued:
        return {}
    channels = Channel.unscoped.select_related("organization", "lane").in_bulk({m.channel_id for m in queued.values()})
    streams = Stream.unscoped.in_bulk({m.stream_id for m in queued.values() if m.stream_id})
    facts = history.facts(channels.values())
    new = {pk for (pk,) in db.rows(_NEW, [list(queued)])}
    found: dict[UUID, Waiting] = {}
    for pk, message in queued.items():
        stream = streams.get(message.stream_id) if message.stream_id else None
        asked = MessageNow(
            priority=message.priority,
            not_before=message.not_before,
            stream=None if stream is None else stream_now(stream),
            person=PersonNow(is_new=pk in new),
        )
        channel = channels[message.channel_id]
        wait = wait_of(channel.lane, facts[channel.pk], asked, now)
        if wait is not None and wait.code == WaitingCode.RETRY_WAIT:
            # The row knows for what it was put off.
            wait = Waiting(codes.waiting_outside(message.waiting_code), wait.until)
        if wait is not None:
            found[pk] = wait
    return found


def wait_of(lane: Lane, facts: Facts, message: MessageNow, now: datetime) -> Waiting | None:
    """What would hold this message up on the lane at ``now``. A lane that is just sending holds nobody up."""
    answer = judged(lane, facts, message, now)
    if answer.verdict in {Verdict.GO, Verdict.NEVER} or (answer.code == "pace" and lane.busy_message is not None):
        return None
    return Waiting(codes.waiting_outside(answer.code, is_hold=answer.code in lane.holds), answer.until)


def judged(lane: Lane, facts: Facts, message: MessageNow, now: datetime) -> Judgement:
    """The verdict on a message, by the lane's row and the policy."""
    case = Case(
        message=message,
        history=History(
            connected=lane.connected,
            holds=tuple(lane.holds),
            any_at=lane.any_at,
            broadcast_at=lane.broadcast_at,
            used=lane.used,
            used_new=lane.used_new,
            counted_until=lane.day_ends_at,
        ),
        facts=facts,
        figures=figures_of(lane, facts, now),
        now=now,
        keep_open=settings.SEND_DEADLINE_SECONDS,
    )
    return verdicts.verdict(case)


def figures_of(lane: Lane, facts: Facts, now: datetime) -> Figures:
    """The lane's figures, or those by which the gate would have them replaced."""
    closes_in = (lane.open_until - now).total_seconds()
    if lane.day_starts_at <= now < lane.figures_until and closes_in > settings.SEND_DEADLINE_SECONDS:
        return Figures(**{name: getattr(lane, name) for name in _FIGURES})
    keep_open = settings.SEND_DEADLINE_SECONDS
    return policy.figures(facts, now, keep_open=keep_open, spread=0.0, pace_scale=settings.PACE_SCALE)


def stream_now(stream: Stream) -> StreamNow:
    """A stream as the policy sees it."""
    hours = None
    if stream.window_opens is not None and stream.window_closes is not None:
        hours = stream.window_opens, stream.window_closes
    return StreamNow(state=stream.state, expires_at=stream.expires_at, hours=hours)


def closed_to_new_people(lane: Lane, facts: Facts, now: datetime) -> Waiting | None:
    """Why the lane writes to nobody new at ``now``, whatever else may leave; None where it does."""
    figures = figures_of(lane, facts, now)
    if figures.restricted:
        return Waiting(WaitingCode.CHANNEL_RESTRICTED, figures.restricted_until)
    used_new = lane.used_new if lane.day_ends_at > now else 0
    if used_new >= figures.cap_new:
        return Waiting(WaitingCode.NEW_PEOPLE_LIMIT, figures.day_ends_at)
    return None
