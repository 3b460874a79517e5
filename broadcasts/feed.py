"""The feed: a little more work than the lanes can do until it comes round again, and no more.

What waits in the rows of recipients can still be paused, canceled, and left out at no cost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, reduce
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from broadcasts import content as contents
from broadcasts import drafts, freezing, outlook, services, variations
from broadcasts.codes import PauseCode
from broadcasts.content import Content
from broadcasts.models import Broadcast, Feed, Recipient
from events import services as events
from messaging import streams
from messaging.faults import Point, reach
from messaging.models import Lane, Stream
from messaging.selectors import TALKED
from messaging.streams import Page

State = Recipient.State

_AT_ONCE = 200
_LEAST_AHEAD = 2
# Whole pages of people who are left out: so many in one transaction, the rest at the next turn.
_MOST_PAGES = 20
_NEW_PEOPLE_PAUSE = timedelta(minutes=5)

_NEXT = """
SELECT r.id, r.message_id, r.contact_id, r.phone, r.position, c.is_blocked, c.is_on_hold, {person}
FROM broadcast_recipients r LEFT JOIN contacts c ON c.id = r.contact_id
WHERE r.broadcast_id = %s AND r.channel_id = %s AND r.state = 'pending' AND (%s OR {talked})
ORDER BY r.position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class _Person:
    """A pending recipient, as he is now."""

    recipient_id: UUID
    message_id: UUID
    contact_id: UUID | None
    phone: str
    position: int
    is_blocked: bool | None
    is_on_hold: bool | None
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One broadcast's turn: its stream is locked, and it is sending."""

    broadcast: Broadcast
    stream: Stream
    content: Content
    now: datetime


def run(*, now: datetime) -> int:
    """Feed every lane whose time has come; how many messages were queued. One query where none has."""
    due = Feed.unscoped.filter(feed_at__lte=now, broadcast__status=Broadcast.Status.SENDING).order_by("feed_at")
    rows = due.values_list("broadcast_id", "broadcast__stream_id")[:_AT_ONCE]
    return services.each(dict.fromkeys(rows), partial(_feed, now=now))


@transaction.atomic
def _feed(broadcast_id: UUID, stream_id: UUID, *, now: datetime) -> int:
    found = services.tried(broadcast_id, stream_id)
    if found is None:
        return 0
    stream, broadcast = found
    if broadcast.status != Broadcast.Status.SENDING:
        return 0
    if stream.expires_at is not None and stream.expires_at <= now:
        # Completion ends what is left.
        return 0
    if not drafts.may_send(broadcast.owner, broadcast.group):
        code = PauseCode.OWNER_WITHOUT_RIGHT
        services.pause_locked(stream, broadcast, code=code, actor=events.SYSTEM, now=now)
        return 0
    turn = _Turn(broadcast, stream, contents.stored(broadcast.variations, broadcast.variables), now)
    waiting = streams.queued(stream, now=now)
    # In one order, as lanes are locked everywhere.
    feeds = list(broadcast.feeds.filter(feed_at__lte=now).order_by("channel_id"))
    fed = sum(_top_up(turn, feed, waiting.get(feed.channel_id, 0)) for feed in feeds)
    if fed:
        reach(Point.INSIDE_FEED)
    return fed


def _top_up(turn: _Turn, feed: Feed, waiting: int) -> int:
    """Fill one lane up to what it may do ahead, in the order of the audience; how many were queued."""
    lane = Lane.objects.get(pk=feed.channel_id)
    takes_new = _takes_new_people(lane, turn.now)
    room = max(_ahead(lane) - waiting, 0)
    fed = 0
    for _page in range(_MOST_PAGES):
        wanted = room - fed
        people = _next(turn, feed.channel_id, wanted, takes_new=takes_new) if wanted else []
        fed += _feed_page(turn, feed.channel_id, people)
        if len(people) < wanted or not people:
            break
    pending = Recipient.objects.of(feed.organization_id).filter(
        broadcast=turn.broadcast, channel=feed.channel_id, state=State.PENDING
    )
    pause = timedelta(seconds=settings.FEED_AHEAD_SECONDS / 2 if fed >= room else 0)
    if not takes_new and fed < room:
        # Nobody is left but people never written to before: each look goes through all of them.
        pause = min(_NEW_PEOPLE_PAUSE, lane.figures_until - turn.now)
    feed.feed_at = turn.now + pause if pending.exists() else None
    feed.save(update_fields=["feed_at"])
    return fed


def _takes_new_people(lane: Lane, now: datetime) -> bool:
    """Whether the gate would let somebody through who was never written to before, as far as the figures tell.

    If not, he stays pending and the next one goes: queued, he would only be put off.
    """
    return lane.figures_until <= now or (not lane.restricted and lane.used_new < lane.cap_new)


def _ahead(lane: Lane) -> int:
    """How many messages a lane sends in FEED_AHEAD_SECONDS at its own mean pace."""
    mean = outlook.mean_pace(lane)
    return max(math.ceil(settings.FEED_AHEAD_SECONDS / mean), _LEAST_AHEAD)


def _next(turn: _Turn, channel_id: UUID, number: int, *, takes_new: bool) -> list[_Person]:
    parts = {"{person}": freezing.person("r.name", "c.attributes"), "{talked}": TALKED.format(contact="r.contact_id")}
    statement = reduce(lambda text, part: text.replace(*part), parts.items(), _NEXT)
    with connection.cursor() as cursor:
        cursor.execute(statement, [turn.content.personal, turn.broadcast.pk, channel_id, takes_new, number])
        return [_Person(*row) for row in cursor.fetchall()]


def _feed_page(turn: _Turn, channel_id: UUID, people: list[_Person]) -> int:
    pages: list[Page] = []
    fed: list[UUID] = []
    left_out: defaultdict[str, list[UUID]] = defaultdict(list)
    for person in people:
        text, code = _words(turn, person)
        if code:
            left_out[code].append(person.recipient_id)
            continue
        pages.append(Page(person.message_id, person.contact_id, person.phone, text, person.position))
        fed.append(person.recipient_id)
    recipients = Recipient.objects.of(turn.broadcast.organization_id)
    for code, skipped in left_out.items():
        recipients.filter(pk__in=skipped).update(state=State.SKIPPED, code=code, updated_at=turn.now)
    recipients.filter(pk__in=fed).update(state=State.FED, updated_at=turn.now)
    streams.feed(stream=turn.stream, channel_id=channel_id, page=pages)
    return len(pages)


def _words(turn: _Turn, person: _Person) -> tuple[str, str]:
    """What the person is told, or (after an empty text) why he is left out."""
    if person.contact_id is None:
        return "", "contact_erased"
    if person.is_blocked:
        return "", "contact_blocked"
    if person.is_on_hold:
        return "", "contact_on_hold"
    try:
        text = turn.content.text_for(
            broadcast_id=turn.broadcast.pk, recipient_id=person.recipient_id, person=person.values
        )
    except variations.MissingVariable:
        return "", Recipient.Exclusion.MISSING_VARIABLE.value
    if variations.text_length(text) > variations.MAX_TEXT:
        return "", Recipient.Exclusion.TEXT_TOO_LONG.value
    return text, ""
