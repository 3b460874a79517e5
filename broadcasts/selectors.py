"""Reads: broadcasts, their counters, their people. Counters are counted from the rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Prefetch, Q, QuerySet

from broadcasts.models import Broadcast, Feed, Recipient
from messaging.models import Channel, Message, Stream
from permissions import ids
from permissions import selectors as permissions
from permissions.models import Organization, User

State = Recipient.State
Wire = Message.Status

WORDS = (
    "pending",
    "queued",
    "sending",
    "in_doubt",
    "sent",
    "delivered",
    "read",
    "failed",
    "canceled",
    "expired",
    "skipped",
    "excluded",
)
# The outside word of a message's status, where it is another.
_WORD_OF = {Wire.CLAIMED.value: "queued", Wire.PLAYED.value: "read"}
_OUTCOME = (
    "phone", "state", "code", "duplicate_of", "message_id", "updated_at", "position", "contact__external_id",
)  # fmt: skip
_UNFED = [state for state in State.values if state != State.FED]
# What is still to be sent, for a number's remaining work.
_TO_SEND = {"pending", "queued", "sending"}
LIVE_SECONDS = 1.0
_LIVE_MOST = 1000


@dataclass(frozen=True, slots=True)
class Tally:
    """One broadcast in figures. ``counts`` are exclusive and hold each of WORDS.

    ``remaining`` says how many each number still has to send.
    """

    counts: Mapping[str, int]
    remaining: Mapping[UUID, int] = field(default_factory=dict)

    @property
    def total_count(self) -> int:
        """How many people it was frozen for, the excluded not counted."""
        return sum(self.counts.values()) - self.counts["excluded"]

    @property
    def sent_count(self) -> int:
        """A message that was delivered or read was sent, too."""
        return self.counts["sent"] + self.delivered_count

    @property
    def delivered_count(self) -> int:
        return self.counts["delivered"] + self.read_count

    @property
    def read_count(self) -> int:
        return self.counts["read"]

    @property
    def failed_count(self) -> int:
        """Those in doubt among them: they read as failed until evidence comes."""
        return self.counts["failed"] + self.counts["in_doubt"]


def tally(broadcast: Broadcast) -> Tally:
    return tallies([broadcast])[broadcast.pk]


def tallies(broadcasts: Iterable[Broadcast]) -> dict[UUID, Tally]:
    """The figures of each, by id. One statement, so that nobody is counted twice or not at all."""
    by_stream = {broadcast.stream_id: broadcast.pk for broadcast in broadcasts}
    counts = {broadcast_id: dict.fromkeys(WORDS, 0) for broadcast_id in by_stream.values()}
    remaining: dict[UUID, Counter[UUID]] = {broadcast_id: Counter() for broadcast_id in by_stream.values()}
    for source_id, channel_id, status, number in counted(by_stream):
        broadcast_id, word = by_stream.get(source_id, source_id), _WORD_OF.get(status, status)
        counts[broadcast_id][word] += number
        if word in _TO_SEND and channel_id is not None:
            remaining[broadcast_id][channel_id] += number
    return {broadcast_id: Tally(counts[broadcast_id], remaining[broadcast_id]) for broadcast_id in counts}


_live: dict[UUID, tuple[float, Tally]] = {}


def live_tally(broadcast: Broadcast) -> Tally:
    """``tally``, at most a second old: for screens that ask again and again."""
    now = time.monotonic()
    kept = _live.get(broadcast.pk)
    if kept is not None and now - kept[0] < LIVE_SECONDS:
        return kept[1]
    if len(_live) >= _LIVE_MOST:
        _live.clear()
    counted = tally(broadcast)
    _live[broadcast.pk] = (now, counted)
    return counted


def work_on(channel_ids: Collection[UUID]) -> dict[UUID, dict[UUID, int]]:
    """``{channel: {stream: messages}}``: what the running broadcasts of these numbers still have to send."""
    running = [Broadcast.Status.QUEUED, Broadcast.Status.SENDING]
    pending = (
        Recipient.unscoped.filter(channel__in=channel_ids, state=State.PENDING, broadcast__status__in=running)
        .order_by()
        .values_list("channel", "broadcast__stream")
        .annotate(number=Count("pk"))
    )
    waiting = (
        Message.unscoped.filter(channel__in=channel_ids, status=Wire.QUEUED, stream__state=Stream.State.RUNNING)
        .order_by()
        .values_list("channel", "stream")
        .annotate(number=Count("pk"))
    )
    found: dict[UUID, dict[UUID, int]] = {}
    for channel_id, stream_id, number in pending.union(waiting, all=True) if channel_ids else ():
        of_channel = found.setdefault(channel_id, {})
        of_channel[stream_id] = of_channel.get(stream_id, 0) + number
    return found


def exclusions(broadcast: Broadcast) -> dict[str, int]:
    """How many people the freeze left out, by reason; the commonest first."""
    out = Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast, state=State.EXCLUDED)
    return dict(out.values_list("code").annotate(number=Count("pk")).order_by("-number", "code"))


def never_written_to(broadcast: Broadcast) -> int:
    """How many of its people have no message from or to any number of the organization."""
    known = Message.objects.of(broadcast.organization_id).filter(contact=OuterRef("contact"))
    people = Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast, state=State.PENDING)
    return people.filter(~Exists(known)).count()


def texts_on(channels: Iterable[Channel], *, before: Broadcast, number: int) -> list[list[str]]:
    """For each number, the last texts of the broadcasts it had before this one, oldest first.

    What ended before it began said nothing to anybody.
    """
    unsaid = Q(started_at=None, status__in=[Broadcast.Status.CANCELED, Broadcast.Status.FAILED])
    earlier = Broadcast.objects.of(before.organization_id).exclude(unsaid).exclude(pk=before.pk).order_by("-created_at")
    found: list[list[str]] = []
    for channel in channels:
        newest_first: list[str] = []
        # A broadcast has several texts, so that fewer of them are enough.
        for texts in earlier.filter(feeds__channel=channel).values_list("variations", flat=True)[:number]:
            newest_first += reversed(texts)
        found.append(newest_first[:number][::-1])
    return found


def visible_to(*, organization: Organization, person: User, reads_all: bool) -> QuerySet[Broadcast]:
    """The broadcasts that a person sees: his own; all of the organization with that right, or as its admin."""
    rows = _rows(organization)
    if reads_all or permissions.is_admin(organization_id=organization.pk, user_id=person.pk):
        return rows
    return rows.filter(owner=person)


def is_owner_or_admin(broadcast: Broadcast, person: User) -> bool:
    """Who may see a broadcast without any other right, and move it."""
    return broadcast.owner_id == person.pk or permissions.is_admin(
        organization_id=broadcast.organization_id, user_id=person.pk
    )


def find(*, organization: Organization, reference: str) -> Broadcast | None:
    """A broadcast by its id (``bc_…``) or its public id."""
    broadcast_id = ids.decode(ids.BROADCAST, reference)
    known = {"pk": broadcast_id} if broadcast_id else {"public_id": reference}
    return _rows(organization).filter(**known).first()


def word_of(message: Message) -> str:
    """What a message's status is called outside; in doubt is a word of its own here."""
    return _WORD_OF.get(message.status, message.status)


def recipients(broadcast: Broadcast, *, status: str | None = None) -> QuerySet[Recipient]:
    """The people of a broadcast; ``status`` is one of WORDS.

    Who is in doubt reads as failed, and is found by both words.
    """
    rows = Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast).select_related("contact")
    if status is None:
        return rows
    wire = [value for value in Wire.values if _WORD_OF.get(value, value) == status]
    if status == "failed":
        wire.append(Wire.IN_DOUBT.value)
    message = Message.objects.of(broadcast.organization_id).filter(pk=OuterRef("message_id"), status__in=wire)
    return rows.filter(Q(Exists(message), state=State.FED) | Q(state=status) & ~Q(state=State.FED))


def last_position(broadcast: Broadcast) -> int:
    """Where the audience ends; positions count from 1."""
    people = Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast)
    return people.aggregate(last=Max("position"))["last"] or 0


def outcomes_between(
    broadcast: Broadcast, after: int, last: int, *, status: str | None = None
) -> QuerySet[Recipient, Recipient]:
    """``recipients`` of these places, in order, with no more of each than its outcome needs."""
    rows = recipients(broadcast, status=status).filter(position__gt=after, position__lte=last)
    return rows.order_by("position").only(*_OUTCOME)


def messages_of(people: Iterable[Recipient]) -> dict[UUID, Message]:
    """The messages of those who have been fed, by id."""
    fed = [person.message_id for person in people if person.state == State.FED]
    # Nobody asks for the words here, and they are most of a message.
    return Message.unscoped.defer("text", "history").in_bulk(fed)


def _rows(organization: Organization) -> QuerySet[Broadcast]:
    feeds = Prefetch("feeds", Feed.unscoped.order_by("pk"))
    return Broadcast.objects.of(organization).select_related("stream").prefetch_related(feeds)


def counted(
    by_stream: Mapping[UUID, UUID], **conditions: UUID
) -> QuerySet[Recipient, tuple[UUID, UUID | None, str, int]]:
    """(broadcast or its stream, number, state or status, how many), each from an index alone: it counts rows.

    The index is led by the organization as well. A policy names it; ``conditions`` are for whom none binds: beside a
    policy's they cost each row a comparison more.
    """
    unfed = (
        # The fed ones are their messages: by the states that are left the index passes over them.
        Recipient.unscoped.filter(broadcast__in=list(by_stream.values()), state__in=_UNFED, **conditions)
        .order_by()
        .values_list("broadcast", "channel", "state")
        .annotate(number=Count("*"))
    )
    fed = (
        Message.unscoped.filter(stream__in=list(by_stream), **conditions)
        .order_by()
        .values_list("stream", "channel", "status")
        .annotate(number=Count("*"))
    )
    return unfed.union(fed, all=True)
