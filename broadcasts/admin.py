"""Broadcasts and their people in the console: watched live, moved through the same services as by the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from broadcasts import selectors, services, words
from broadcasts.models import Broadcast, Recipient
from broadcasts.refusals import InvalidTransition
from broadcasts.selectors import Tally
from events import services as events
from messaging.models import Channel, Message
from permissions.admin_base import (
    READERS,
    RelatedFilter,
    TenantAdmin,
    by_uuid,
    display,
    plain,
    reach,
    signed_in,
)
from permissions.admin_steps import Step, StepAdmin, Text, refusing

Status = Broadcast.Status
_COLOURS = {
    "queued": "info",
    "scheduled": "info",
    "pending_review": "warning",
    "sending": "primary",
    "paused": "warning",
    "completed": "success",
    "canceled": "default",
    "failed": "danger",
}
_RUNNING = {Status.QUEUED, Status.SENDING}
_OPEN = {*_RUNNING, Status.SCHEDULED, Status.PENDING_REVIEW, Status.PAUSED}
# How often a page asks for the counts: while something moves, and while nothing should.
_LIVE_SECONDS = 2
_QUIET_SECONDS = 15
# Acks come in long after the last message has left.
_ACKS_FOR_SECONDS = 3600


def _move(service: Callable[..., Broadcast], done: Text) -> Callable[[HttpRequest, Any, dict[str, Any]], Text]:
    def run(request: HttpRequest, broadcast: Broadcast, _data: dict[str, Any]) -> Text:
        words_for: dict[type[Exception], Text] = {
            InvalidTransition: _("This is no longer possible: the state has changed meanwhile.")
        }
        with refusing(words_for):
            service(broadcast=broadcast, actor=events.user(signed_in(request)), now=timezone.now())
        return done

    return run


def _waiting(broadcast: Broadcast) -> int:
    counts = selectors.tally(broadcast).counts
    return counts["pending"] + counts["queued"]


def _ask_pause(broadcast: Broadcast) -> Text:
    number = _waiting(broadcast)
    return ngettext(
        "%(n)s person is still waiting. The message that is leaving right now still leaves.",
        "%(n)s people are still waiting. The message that is leaving right now still leaves.",
        number,
    ) % {"n": number}


def _ask_resume(broadcast: Broadcast) -> Text:
    number = _waiting(broadcast)
    return ngettext(
        "Sending goes on to the %(n)s person who is still waiting.",
        "Sending goes on to the %(n)s people who are still waiting.",
        number,
    ) % {"n": number}


def _ask_cancel(broadcast: Broadcast) -> Text:
    number = _waiting(broadcast)
    return ngettext(
        "%(n)s person will never get this message. This can't be undone.",
        "%(n)s people will never get this message. This can't be undone.",
        number,
    ) % {"n": number}


@admin.register(Broadcast)
class BroadcastAdmin(StepAdmin):
    see = READERS
    list_display = ("title", "status_words", "progress", "group", "owner", "created_at")
    list_filter = ("status", ("group", RelatedFilter), ("owner", RelatedFilter))
    list_select_related = ("group", "owner", "organization")
    search_fields = ("name", "=public_id")
    fields = (
        "name", "public_id", "group", "owner_name", "api_key", "organization", "numbers", "texts", "variables",
        "language",
        "created_at", "started_at", "finished_at", "expires_at",
    )  # fmt: skip
    readonly_fields = fields
    change_form_outer_before_template = "console/broadcast.html"
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "pause",
            _("Pause"),
            _move(services.pause, _("Paused.")),
            _ask_pause,
            offered=lambda broadcast: broadcast.status in _RUNNING,
            icon="pause",
        ),
        Step(
            "resume",
            _("Resume"),
            _move(services.resume, _("Resumed.")),
            _ask_resume,
            offered=lambda broadcast: broadcast.status == Status.PAUSED,
            icon="play_arrow",
            variant="primary",
        ),
        Step(
            "cancel",
            _("Cancel broadcast"),
            _move(services.cancel, _("Canceled.")),
            _ask_cancel,
            offered=lambda broadcast: broadcast.status in _OPEN,
            icon="cancel",
            variant="danger",
        ),
    )

    owner_name = plain("owner", _("owner"))

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-pk",) if reach(request).everything else ("-created_at",)

    def get_urls(self) -> list[URLPattern]:
        live = path(
            "<path:object_id>/live/", self.admin_site.admin_view(self.live_view), name="broadcasts_broadcast_live"
        )
        return [live, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).select_related("organization", "stream")
        return rows

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        tallies = selectors.tallies(rows)
        for broadcast in rows:
            broadcast.tally = tallies[broadcast.pk]

    def page_context(self, request: HttpRequest, obj: Broadcast) -> dict[str, Any]:
        return self.live_context(request, obj)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The counts of one broadcast, for its page to ask again and again."""
        broadcast = self.found(request, object_id)
        if isinstance(broadcast, HttpResponse):
            return broadcast
        context = self.live_context(request, broadcast) | {"buttons": self.buttons(request, broadcast)}
        headers = {"X-Live": "1", "Cache-Control": "no-store"}
        return TemplateResponse(request, "console/broadcast_live.html", context, headers=headers)

    def live_context(self, request: HttpRequest, broadcast: Broadcast) -> dict[str, Any]:
        tally = selectors.live_tally(broadcast)
        people = reverse("admin:broadcasts_recipient_changelist")
        figures = [
            {
                "word": word,
                "label": label,
                "hint": words.COUNT_HINTS[word],
                "number": tally.counts[word],
                "url": f"{people}?broadcast={broadcast.pk}&status={word}",
            }
            for word, label in words.COUNT_WORDS.items()
        ]
        zone = broadcast.organization.time_zone
        return {
            "broadcast": broadcast,
            "status_colour": _COLOURS.get(broadcast.status, "default"),
            "sentence": words.sentence(broadcast, tally, _wait(broadcast, tally), zone=zone),
            "tally": tally,
            "figures": figures,
            "bar": bar(tally),
            "reasons": _reasons(broadcast),
            "people_url": f"{people}?broadcast={broadcast.pk}",
            "live_url": self.url_of("live", broadcast.pk),
            "live_seconds": _seconds(broadcast, tally),
        }

    @display(description=_("broadcast"), ordering="name")
    def title(self, broadcast: Broadcast) -> SafeString:
        if not broadcast.name:
            return format_html("{}", broadcast.public_id)
        return format_html('{}<span class="block text-xs text-subtle">{}</span>', broadcast.name, broadcast.public_id)

    @display(description=_("state"), label=_COLOURS)
    def status_words(self, broadcast: Broadcast) -> tuple[str, Any]:
        return broadcast.status, broadcast.get_status_display()

    @display(description=_("progress"))
    def progress(self, broadcast: Any) -> str:
        return render_to_string("console/bar_cell.html", {"tally": broadcast.tally, "bar": bar(broadcast.tally)})

    @display(description=_("numbers"))
    def numbers(self, broadcast: Broadcast) -> str:
        return ", ".join(str(channel) for channel in broadcast.channels.all())

    @display(description=_("texts"))
    def texts(self, broadcast: Broadcast) -> SafeString:
        return SafeString(render_to_string("console/texts.html", {"texts": broadcast.variations}))


def bar(tally: Tally) -> list[dict[str, Any]]:
    """The parts of a progress bar, in percent of everybody who was to get the message."""
    total = max(tally.total_count, 1)
    counts = tally.counts
    out = counts["skipped"] + counts["canceled"] + counts["expired"]
    numbers = {
        "read": counts["read"],
        "delivered": counts["delivered"],
        "sent": counts["sent"],
        "failed": counts["failed"],
        "in_doubt": counts["in_doubt"],
        "left-out": out,
    }
    # A style attribute wants a point, in every language.
    return [{"kind": kind, "width": f"{100 * number / total:.2f}"} for kind, number in numbers.items() if number]


def _seconds(broadcast: Broadcast, tally: Tally) -> int | str:
    """How soon the page asks again; "" once nothing changes any more."""
    if broadcast.status in _RUNNING or tally.counts["sending"]:
        return _LIVE_SECONDS
    if broadcast.status in _OPEN:
        return _QUIET_SECONDS
    ended = broadcast.finished_at
    recent = ended is not None and (timezone.now() - ended).total_seconds() < _ACKS_FOR_SECONDS
    return _QUIET_SECONDS if recent and tally.counts["sent"] + tally.counts["delivered"] else ""


def _wait(broadcast: Broadcast, tally: Tally) -> words.Wait | None:
    """What holds every number that still has work; None where one of them goes on."""
    if broadcast.status != Status.SENDING or not tally.remaining:
        return None
    waits = [_wait_of(channel) for channel in _working(tally)]
    known = [wait for wait in waits if wait is not None]
    if not known or len(known) < len(waits):
        return None
    return min(known, key=lambda wait: (wait.until is None, wait.until or timezone.now()))


def _working(tally: Tally) -> list[Channel]:
    return list(Channel.unscoped.filter(pk__in=list(tally.remaining)).select_related("lane"))


def _wait_of(channel: Channel) -> words.Wait | None:
    lane, now = channel.lane, timezone.now()
    if not lane.connected:
        return words.Wait("channel_disconnected", None)
    if lane.holds:
        return words.Wait(lane.holds[0], None)
    if lane.open_from > now:
        return words.Wait("outside_window", lane.open_from)
    if lane.cap_soft and lane.used >= lane.cap_soft and lane.day_ends_at > now:
        return words.Wait("daily_limit", lane.day_ends_at)
    return None


def _reasons(broadcast: Broadcast) -> list[dict[str, Any]]:
    """Why people got nothing, by cause: left out, skipped, failed."""
    out = (
        Recipient.objects.of(broadcast.organization_id)
        .filter(broadcast=broadcast, state__in=["excluded", "skipped"])
        .values_list("state", "code")
    )
    wrong = (
        Message.objects.of(broadcast.organization_id)
        .filter(stream=broadcast.stream_id, status__in=["failed", "in_doubt", "skipped"])
        .values_list("status", "error_code")
    )
    found: list[tuple[str, str, int]] = []
    for rows in (out, wrong):
        found += rows.annotate(n=Count("pk")).order_by("-n")
    return [
        {"state": words.COUNT_WORDS[state], "why": words.reason(code) if code else "—", "number": number}
        for state, code, number in found
    ]


class BroadcastFilter(admin.SimpleListFilter):
    """One broadcast, chosen on its page."""

    title = _("broadcast")
    parameter_name = "broadcast"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = _chosen(request)
        return [] if chosen is None else [(str(chosen.pk), str(chosen))]

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 0

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return by_uuid(queryset, "broadcast", self.value())


class OutcomeFilter(admin.SimpleListFilter):
    """By the outside word, within one broadcast: what became of a fed person is his message's status."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [] if _chosen(request) is None else list(words.COUNT_WORDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = _chosen(request)
        if chosen is None or self.value() not in words.COUNT_WORDS:
            return queryset
        return queryset.filter(pk__in=selectors.recipients(chosen, status=self.value()).values("pk"))


def _chosen(request: HttpRequest) -> Broadcast | None:
    """The broadcast that the list is of; None where none is chosen, or none of the person's."""
    mine = reach(request).within(Broadcast.unscoped.all(), "organization", READERS)
    text = request.GET.get(BroadcastFilter.parameter_name)
    found: Broadcast | None = by_uuid(mine, "pk", text).first() if text else None
    return found


@admin.register(Recipient)
class RecipientAdmin(TenantAdmin):
    """The people of broadcasts, each with what became of his message."""

    list_display = ("person", "phone", "outcome", "why", "channel", "broadcast", "updated_at")
    list_filter = (BroadcastFilter, OutcomeFilter, "state")
    list_select_related = ("channel", "broadcast")
    search_fields = ("name", "phone")
    fields = ("person", "phone", "outcome", "why", "message_page", "contact", "channel", "broadcast", "updated_at")
    readonly_fields = fields

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("position",) if "broadcast" in request.GET else ("-pk",)

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        found = selectors.messages_of(rows)
        for person in rows:
            person.message = found.get(person.message_id)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        person = super().get_object(request, object_id, from_field)
        if person is not None:
            self.prepare(request, [person])
        return person

    @display(description=_("name"), ordering="name")
    def person(self, recipient: Recipient) -> str:
        return recipient.name or "—"

    @display(description=_("status"), label=words.COLOURS)
    def outcome(self, recipient: Any) -> tuple[str, Any]:
        word = _word(recipient.message.status if recipient.message else recipient.state)
        return word, words.COUNT_WORDS.get(word, word)

    @display(description=_("why"))
    def why(self, recipient: Any) -> Any:
        message = recipient.message
        code = (message.error_code or message.waiting_code) if message else recipient.code
        if not code:
            return "—"
        if recipient.duplicate_of:
            return format_html("{}: {}", words.reason(code), recipient.duplicate_of)
        return words.reason(code)

    @display(description=_("message"))
    def message_page(self, recipient: Any) -> Any:
        if recipient.message is None:
            return "—"
        page = reverse("admin:messaging_message_change", args=[recipient.message_id])
        return format_html(
            '<a href="{}" class="text-primary-600 dark:text-primary-500">{}</a>', page, _("Open the message")
        )


def _word(status: str) -> str:
    return {"claimed": "queued", "played": "read", "fed": "queued"}.get(status, status)


def running(rows: QuerySet[Any]) -> list[dict[str, Any]]:
    """Broadcasts under way among these rows, each with its figures; for the first page."""
    found = list(rows.filter(status__in=[*_OPEN]).select_related("group", "organization").order_by("-pk")[:10])
    tallies: dict[UUID, Tally] = selectors.tallies(found)
    return [
        {
            "broadcast": broadcast,
            "tally": tallies[broadcast.pk],
            "bar": bar(tallies[broadcast.pk]),
            "colour": _COLOURS.get(broadcast.status, "default"),
            "url": reverse("admin:broadcasts_broadcast_change", args=[broadcast.pk]),
        }
        for broadcast in found
    ]
