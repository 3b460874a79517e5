"""Broadcasts and their people in the console: watched live, moved through the same services as by the API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext_lazy as _

from broadcasts import exports, review, screen, selectors, services, words
from broadcasts.models import Broadcast, Recipient
from broadcasts.refusals import InvalidTransition, Refused
from events import services as events
from messaging import streams
from permissions.admin_base import (
    READERS,
    Labelled,
    RelatedFilter,
    TenantAdmin,
    by_uuid,
    display,
    plain,
    reach,
    signed_in,
)
from permissions.admin_steps import ConsoleForm, Step, StepAdmin, Text, refusing
from permissions.admin_steps import Refused as StepRefused

Status = Broadcast.Status


@contextmanager
def _refusing() -> Iterator[None]:
    """The room's refusals, said to the person."""
    words_for: dict[type[Exception], Text] = {
        InvalidTransition: _("This is no longer possible: the state has changed meanwhile.")
    }
    with refusing(words_for):
        try:
            yield
        except Refused as refused:
            raise StepRefused(refused.detail) from refused


def _move(service: Callable[..., Broadcast], done: Text) -> Callable[[HttpRequest, Any, dict[str, Any]], Text]:
    def run(request: HttpRequest, broadcast: Broadcast, _data: dict[str, Any]) -> Text:
        with _refusing():
            service(broadcast=broadcast, actor=events.user(signed_in(request)), now=timezone.now())
        return done

    return run


class ApprovalForm(ConsoleForm):
    """Who is the only admin types how many people it is; anybody else just agrees."""

    confirmed = forms.IntegerField(
        label=_("number of recipients"),
        min_value=0,
        help_text=_("You are the only admin: confirm by typing how many people get the message."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not review.is_lone_admin(self.obj.organization_id, signed_in(self.request)):
            del self.fields["confirmed"]


def _approve(request: HttpRequest, broadcast: Broadcast, data: dict[str, Any]) -> Text:
    person = signed_in(request)
    with _refusing():
        services.approve(
            broadcast=broadcast,
            approver=person,
            actor=events.user(person),
            now=timezone.now(),
            confirmed=data.get("confirmed"),
        )
    return _("Approved.")


def _ask_approve(broadcast: Broadcast) -> Text:
    number = selectors.tally(broadcast).counts["pending"]
    return ngettext(
        "%(n)s person gets the message over numbers that can be banned.",
        "%(n)s people get the message over numbers that can be banned.",
        number,
    ) % {"n": number}


def _ask_retry(broadcast: Broadcast) -> Text:
    number = streams.retryable(broadcast.stream_id)
    return ngettext(
        "%(n)s message certainly was not sent and is tried again. What is in doubt is left alone.",
        "%(n)s messages certainly were not sent and are tried again. What is in doubt is left alone.",
        number,
    ) % {"n": number}


def _can_retry(broadcast: Broadcast) -> bool:
    return broadcast.status in services.RETRIED_IN and streams.retryable(broadcast.stream_id) > 0


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
    search_fields = ("name", "=public_id")
    fields = (
        "name", "public_id", "group", "owner_name", "api_key", "organization", "numbers", "texts", "values",
        "language",
        "created_at", "scheduled_at", "started_at", "finished_at", "ends",
    )  # fmt: skip
    readonly_fields = fields
    change_form_outer_before_template = "console/broadcast.html"
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "approve",
            _("Approve"),
            _approve,
            _ask_approve,
            form=ApprovalForm,
            offered=lambda broadcast: broadcast.status == Status.PENDING_REVIEW,
            icon="how_to_reg",
            variant="primary",
        ),
        Step(
            "pause",
            _("Pause"),
            _move(services.pause, _("Paused.")),
            _ask_pause,
            offered=lambda broadcast: broadcast.status in services.PAUSED_FROM,
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
            "retry-failed",
            _("Send failures again"),
            _move(services.retry_failed, _("They are sent again.")),
            _ask_retry,
            offered=_can_retry,
            icon="replay",
        ),
        Step(
            "cancel",
            _("Cancel broadcast"),
            _move(services.cancel, _("Canceled.")),
            _ask_cancel,
            offered=lambda broadcast: broadcast.status in screen.OPEN,
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
        file = path(
            "<path:object_id>/recipients.csv",
            self.admin_site.admin_view(self.file_view),
            name="broadcasts_broadcast_file",
        )
        return [live, file, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.select_related("group", "owner", "organization", "stream").prefetch_related("channels")

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        tallies = selectors.tallies(rows)
        for broadcast in rows:
            broadcast.tally = tallies[broadcast.pk]

    def page_context(self, request: HttpRequest, obj: Broadcast) -> dict[str, Any]:
        return self.live_context(obj)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The counts of one broadcast, for its page to ask again and again."""
        broadcast = self.found(request, object_id)
        if isinstance(broadcast, HttpResponse):
            return broadcast
        context = self.live_context(broadcast) | {"buttons": self.buttons(request, broadcast)}
        headers = {"X-Live": "1", "Cache-Control": "no-store"}
        return TemplateResponse(request, "console/broadcast_live.html", context, headers=headers)

    def file_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """The people with what became of each, for a spreadsheet of the reader's language."""
        broadcast = self.found(request, object_id)
        if isinstance(broadcast, HttpResponse):
            return broadcast
        separator = "," if (get_language() or "").startswith("en") else ";"
        return StreamingHttpResponse(
            exports.lines(broadcast, separator=separator), content_type=exports.TYPE, headers=exports.headers(broadcast)
        )

    def live_context(self, broadcast: Broadcast) -> dict[str, Any]:
        return {
            **screen.figures(broadcast, now=timezone.now()),
            "people_url": f"{reverse('admin:broadcasts_recipient_changelist')}?broadcast={broadcast.pk}",
            "live_url": self.url_of("live", broadcast.pk),
            "file_url": self.url_of("file", broadcast.pk),
        }

    @display(description=_("broadcast"), ordering="name")
    def title(self, broadcast: Broadcast) -> SafeString:
        if not broadcast.name:
            return format_html("{}", broadcast.public_id)
        return format_html('{}<span class="block text-xs text-subtle">{}</span>', broadcast.name, broadcast.public_id)

    @display(description=_("state"), label=screen.COLOURS)
    def status_words(self, broadcast: Broadcast) -> Labelled:
        return Labelled(broadcast.status, broadcast.get_status_display())

    @display(description=_("progress"))
    def progress(self, broadcast: Any) -> str:
        return render_to_string("console/bar_cell.html", {"tally": broadcast.tally, "bar": screen.bar(broadcast.tally)})

    @display(description=_("numbers"))
    def numbers(self, broadcast: Broadcast) -> str:
        return ", ".join(str(channel) for channel in broadcast.channels.all())

    @display(description=_("expires at"))
    def ends(self, broadcast: Broadcast) -> str:
        # Django formats the times of fields, not those of methods.
        return formats.date_format(timezone.localtime(broadcast.ends_at), "DATETIME_FORMAT")

    @display(description=_("variables"))
    def values(self, broadcast: Broadcast) -> SafeString | str:
        lines = ((name, value) for name, value in sorted(broadcast.variables.items()))
        return format_html_join(SafeString("<br>"), "{}: {}", lines) or "—"

    @display(description=_("texts"))
    def texts(self, broadcast: Broadcast) -> SafeString:
        return SafeString(render_to_string("console/texts.html", {"texts": broadcast.variations}))


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
    def outcome(self, recipient: Any) -> Labelled:
        word = _word(recipient.message.status if recipient.message else recipient.state)
        return Labelled(word, words.COUNT_WORDS.get(word, word))

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
