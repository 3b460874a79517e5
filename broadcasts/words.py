"""A broadcast's states, counts and reasons in words for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils import formats
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from broadcasts.codes import FailureCode, PauseCode, WaitingCode
from broadcasts.models import Broadcast, Recipient
from broadcasts.outlook import Outlook
from broadcasts.selectors import Tally
from messaging.words import words_of

Status = Broadcast.Status
Text = str | Promise

# The outside words of recipients and counts (contract), in the order in which a message goes through them.
COUNT_WORDS: dict[str, Promise] = {
    "pending": _("Waiting"),
    "queued": _("In the queue"),
    "sending": _("Leaving now"),
    "sent": _("Sent"),
    "delivered": _("Delivered"),
    "read": _("Read"),
    "failed": _("Failed"),
    "in_doubt": _("In doubt"),
    "skipped": _("Skipped"),
    "canceled": _("Canceled"),
    "expired": _("Too late"),
    "excluded": _("Left out"),
}
COUNT_HINTS: dict[str, Promise] = {
    "pending": _("their turn has not come yet"),
    "queued": _("next to leave, at the number's pace"),
    "sending": _("handed to WhatsApp, no answer yet"),
    "sent": _("accepted by WhatsApp"),
    "delivered": _("on the person's phone"),
    "read": _("seen by the person"),
    "failed": _("WhatsApp refused it, or every try failed"),
    "in_doubt": _("may or may not have been sent; never repeated by itself"),
    "skipped": _("blocked or put on hold before their turn"),
    "canceled": _("the broadcast was canceled before their turn"),
    "expired": _("the broadcast's time was over before their turn"),
    "excluded": _("left out when the broadcast was made"),
}
COLOURS = {
    "pending": "default",
    "queued": "info",
    "sending": "info",
    "sent": "primary",
    "delivered": "success",
    "read": "success",
    "failed": "danger",
    "in_doubt": "warning",
    "skipped": "warning",
}
_PAUSES: dict[str, Promise] = {
    PauseCode.OWNER_WITHOUT_RIGHT: _("Paused: the owner may not write to this group any more."),
    PauseCode.CHANNEL_ARCHIVED: _("Paused: the number was archived."),
    PauseCode.CHANNEL_IN_WARMUP: _("Paused: the number is too new for broadcasts."),
    PauseCode.CHANNEL_RESERVED: _("Paused: the number is a reserve, which sends no broadcasts."),
    PauseCode.START_MISSED: _("Paused: its start was missed by hours. Resume it if it is still wanted."),
}


_FAILURES: dict[str, Promise] = {
    FailureCode.EXPIRED: _("its time was over before anything could leave"),
    FailureCode.CHANNEL_ARCHIVED: _("its number was archived before it started"),
    FailureCode.NOBODY_LEFT: _("by their turn nobody could be written to any more"),
}


_WAITS: dict[str, Promise] = {
    WaitingCode.CHANNEL_ARCHIVED: _("the number was archived"),
}


def waiting(code: str) -> Text:
    """Why nothing leaves right now."""
    return _WAITS.get(code) or words_of(code)


def failure(code: str) -> Text:
    """Why nothing of a broadcast was sent, and nothing can be."""
    return _FAILURES.get(code, code)


def reason(code: str) -> Text:
    """Why somebody was left out, skipped or not reached."""
    if code in Recipient.Exclusion.values:
        return Recipient.Exclusion(code).label
    if code == "contact_erased":
        return _("the person was erased")
    return words_of(code)


@dataclass(frozen=True, slots=True)
class Clock:
    """Now, and the zone in which the tenant reads a time."""

    now: datetime
    zone: ZoneInfo


def sentence(broadcast: Broadcast, tally: Tally, expected: Outlook, clock: Clock) -> Text:
    """One sentence: what the broadcast is doing now."""
    if broadcast.status == Status.PAUSED:
        return _PAUSES.get(broadcast.pause_code, _("Paused: nothing leaves until somebody resumes it."))
    if broadcast.status == Status.SENDING:
        return _sending(tally, expected, clock)
    if broadcast.status == Status.FAILED:
        return gettext("Failed, nothing was sent: %(why)s.") % {"why": failure(broadcast.failure_code)}
    if broadcast.status == Status.SCHEDULED and broadcast.scheduled_at is not None:
        return gettext("Scheduled for %(time)s.") % {"time": _local(broadcast.scheduled_at, clock)}
    if broadcast.status == Status.COMPLETED:
        return _completed(tally)
    return _OTHERS[Status(broadcast.status)]


_OTHERS: dict[Broadcast.Status, Promise] = {
    Status.QUEUED: _("Starting in a moment."),
    Status.PENDING_REVIEW: _("Waiting for an admin's approval: it goes to many people."),
    Status.CANCELED: _("Canceled: what had not left never leaves."),
}


def _sending(tally: Tally, expected: Outlook, clock: Clock) -> str:
    said = [gettext("Sending: %(sent)s of %(total)s sent.") % {"sent": tally.sent_count, "total": tally.total_count}]
    wait = expected.waiting_for
    # A pause of some seconds between two messages is how it goes, and holds nothing up.
    if wait is not None and wait.code != WaitingCode.PACE:
        said.append(gettext("Held: %(why)s.") % {"why": waiting(wait.code)})
        if wait.until is not None:
            said.append(gettext("Goes on at %(time)s.") % {"time": _local(wait.until, clock)})
    if expected.finish_at is not None:
        said.append(gettext("Done at about %(time)s.") % {"time": _local(expected.finish_at, clock)})
    return " ".join(said)


def _local(moment: datetime, clock: Clock) -> str:
    """A time of the tenant's day; with its date where that is another day."""
    local = moment.astimezone(clock.zone)
    if local.date() == clock.now.astimezone(clock.zone).date():
        return f"{local:%H:%M}"
    return f"{formats.date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M}"


def _completed(tally: Tally) -> str:
    done = ngettext(
        "Completed: %(sent)s of %(total)s person got the message.",
        "Completed: %(sent)s of %(total)s people got the message.",
        tally.total_count,
    ) % {"sent": tally.sent_count, "total": tally.total_count}
    doubts = tally.counts["in_doubt"]
    if not doubts:
        return done
    return f"{done} " + ngettext("%(n)s is in doubt.", "%(n)s are in doubt.", doubts) % {"n": doubts}
