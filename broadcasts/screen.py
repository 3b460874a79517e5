"""What a page shows of a broadcast: its sentence, its figures, its bar, and how soon to look again."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count

from broadcasts import outlook, selectors, words
from broadcasts.models import Broadcast, Recipient
from broadcasts.selectors import Tally
from messaging.models import Message

Status = Broadcast.Status
RUNNING = frozenset({Status.QUEUED, Status.SENDING})
OPEN = RUNNING | {Status.SCHEDULED, Status.PENDING_REVIEW, Status.PAUSED}
COLOURS = {
    "queued": "info",
    "scheduled": "info",
    "pending_review": "warning",
    "sending": "primary",
    "paused": "warning",
    "completed": "success",
    "canceled": "default",
    "failed": "danger",
}
# How soon a page asks again: while something moves, and while nothing should.
_LIVE_SECONDS = 2
_QUIET_SECONDS = 15
# Acks come in long after the last message has left.
_ACKS_FOR_SECONDS = 3600


def figures(broadcast: Broadcast, *, now: datetime) -> dict[str, Any]:
    """The live part of a broadcast's page. Its organization is loaded."""
    tally = selectors.live_tally(broadcast)
    expected = outlook.outlooks([broadcast], {broadcast.pk: tally}, now)[broadcast.pk]
    clock = words.Clock(now, ZoneInfo(broadcast.organization.time_zone))
    return {
        "broadcast": broadcast,
        "status_colour": COLOURS.get(broadcast.status, "default"),
        "sentence": words.sentence(broadcast, tally, expected, clock),
        "tally": tally,
        "figures": [
            {"word": word, "label": label, "hint": words.COUNT_HINTS[word], "number": tally.counts[word]}
            for word, label in words.COUNT_WORDS.items()
        ],
        "bar": bar(tally),
        "reasons": _reasons(broadcast),
        "live_seconds": _seconds(broadcast, tally, now),
    }


def bar(tally: Tally) -> list[dict[str, str]]:
    """The parts of a progress bar, in percent of everybody who was to get the message."""
    total = max(tally.total_count, 1)
    counts = tally.counts
    numbers = {
        "read": counts["read"],
        "delivered": counts["delivered"],
        "sent": counts["sent"],
        "failed": counts["failed"],
        "in_doubt": counts["in_doubt"],
        "left-out": counts["skipped"] + counts["canceled"] + counts["expired"],
    }
    # A style attribute wants a point, in every language.
    return [{"kind": kind, "width": f"{100 * number / total:.2f}"} for kind, number in numbers.items() if number]


def _seconds(broadcast: Broadcast, tally: Tally, now: datetime) -> int | str:
    """How soon the page asks again; "" once nothing changes any more."""
    if broadcast.status in RUNNING or tally.counts["sending"]:
        return _LIVE_SECONDS
    if broadcast.status in OPEN:
        return _QUIET_SECONDS
    ended = broadcast.finished_at
    recent = ended is not None and (now - ended).total_seconds() < _ACKS_FOR_SECONDS
    return _QUIET_SECONDS if recent and tally.counts["sent"] + tally.counts["delivered"] else ""


def _reasons(broadcast: Broadcast) -> list[dict[str, Any]]:
    """Why people got nothing, by cause: left out, skipped, failed."""
    out = (
        Recipient.objects.of(broadcast.organization_id)
        .filter(broadcast=broadcast, state__in=[Recipient.State.EXCLUDED, Recipient.State.SKIPPED])
        .values_list("state", "code")
    )
    wrong = (
        Message.objects.of(broadcast.organization_id)
        .filter(
            stream=broadcast.stream_id,
            status__in=[Message.Status.FAILED, Message.Status.IN_DOUBT, Message.Status.SKIPPED],
        )
        .values_list("status", "error_code")
    )
    found: list[tuple[str, str, int]] = [
        *out.annotate(number=Count("pk")).order_by("-number"),
        *wrong.annotate(number=Count("pk")).order_by("-number"),
    ]
    return [
        {"state": words.COUNT_WORDS[state], "why": words.reason(code) if code else "—", "number": number}
        for state, code, number in found
    ]
