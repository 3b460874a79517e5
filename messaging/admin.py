"""Numbers, messages, the raw log and periodic runs in the console."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from messaging import limits, services
from messaging.models import Channel, CronRun, Message, WebhookEvent
from messaging.words import words_of
from permissions.admin_base import ADMINS, InstallationAdmin, Labelled, RelatedFilter, TenantAdmin, display, signed_in
from permissions.admin_steps import ConsoleForm, Step, StepAdmin, Text, refusing

# A payload is shown up to here; the row keeps all of it.
_SHOWN_BYTES = 64 * 1024
MESSAGE_COLOURS = {
    "queued": "info",
    "claimed": "info",
    "sending": "info",
    "sent": "primary",
    "delivered": "success",
    "read": "success",
    "played": "success",
    "received": "success",
    "failed": "danger",
    "in_doubt": "warning",
}


class AgeForm(ConsoleForm):
    since = forms.DateField(label=_("in use since"))
    reason = forms.CharField(label=_("reason"), max_length=200, help_text=_("It is written into the audit trail."))

    def clean_since(self) -> date:
        since: date = self.cleaned_data["since"]
        if since > timezone.localdate():
            raise forms.ValidationError(_("This day is still to come."))
        return since


class WindowForm(ConsoleForm):
    opens = forms.TimeField(label=_("window opens"))
    closes = forms.TimeField(label=_("window closes"), help_text=_("The same time twice means all day long."))
    reason = forms.CharField(label=_("reason"), max_length=200, help_text=_("It is written into the audit trail."))


_REFUSALS: dict[type[Exception], Text] = {
    services.LoosensALimit: _("Only a super-admin may loosen a limit, and gives a reason.")
}


def _set_age(request: HttpRequest, channel: Channel, data: dict[str, Any]) -> Text:
    with refusing(_REFUSALS):
        services.set_age(channel.pk, **data, by=signed_in(request), now=timezone.now())
    return _("The age of the number has been declared.")


def _set_window(request: HttpRequest, channel: Channel, data: dict[str, Any]) -> Text:
    with refusing(_REFUSALS):
        services.set_window(channel.pk, **data, by=signed_in(request), now=timezone.now())
    return _("The hours of the number have been changed.")


def _set_reserve(request: HttpRequest, channel: Channel, _data: dict[str, Any]) -> Text:
    by = limits.By(signed_in(request), "", timezone.now())
    limits.set_reserve(channel.pk, is_reserve=not channel.is_reserve, by=by)
    if channel.is_reserve:
        return _("The number is in use now: it takes broadcasts.")
    return _("The number is a reserve now: it sends no broadcasts.")


@admin.register(Channel)
class ChannelAdmin(StepAdmin):
    """A number and the figures of its lane; what the engine writes is only read."""

    list_display = ("name", "organization", "state_words", "today", "window", "held_by", "is_default")
    list_filter = ("state",)
    list_select_related = ("organization", "lane")
    search_fields = ("name",)
    ordering = ("name",)
    fields = (
        "name", "organization", "kind", "state_words", "today", "window", "held_by", "is_default",
        "is_reserve", "first_connected_at", "in_use_since", "pace",
    )  # fmt: skip
    readonly_fields = ("state_words", "today", "window", "held_by", "pace")
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "age",
            _("Declare age"),
            _set_age,
            lambda _channel: _("A number that is in use for long may send more, and broadcasts from its first day."),
            form=AgeForm,
            super_admins_only=True,
            icon="event",
        ),
        Step(
            "window",
            _("Change hours"),
            _set_window,
            lambda _channel: _("Automatic messages leave within these hours only."),
            form=WindowForm,
            super_admins_only=True,
            icon="schedule",
        ),
        Step(
            "reserve",
            _("Mark as reserve"),
            _set_reserve,
            lambda _channel: _(
                "A reserve is warmed by conversations and sends no broadcasts until it takes over from another number."
            ),
            offered=lambda channel: not channel.is_reserve,
            icon="pause_circle",
        ),
        Step(
            "take-over",
            _("Take over"),
            _set_reserve,
            lambda _channel: _("From now on the number takes broadcasts, as far as its age allows."),
            offered=lambda channel: channel.is_reserve,
            icon="play_circle",
        ),
    )

    @display(description=_("state"), label={"connected": "success", "disconnected": "danger"})
    def state_words(self, channel: Channel) -> Labelled:
        return Labelled(channel.state, channel.get_state_display())

    @display(description=_("sent today / limit"))
    def today(self, channel: Channel) -> str:
        lane = channel.lane
        # A day that is over has not been started anew yet.
        used = lane.used if lane.day_ends_at > timezone.now() else 0
        return f"{used} / {lane.cap_soft}" if lane.cap_soft else str(used)

    @display(description=_("hours"))
    def window(self, channel: Channel) -> Any:
        if channel.window_opens is not None and channel.window_opens == channel.window_closes:
            return _("all day long")
        zone = ZoneInfo(channel.organization.time_zone)
        lane = channel.lane
        if lane.open_until <= timezone.now():
            return "—"
        opens, closes = lane.open_from.astimezone(zone), lane.open_until.astimezone(zone)
        return f"{opens:%H:%M} – {closes:%H:%M}"

    @display(description=_("held by"))
    def held_by(self, channel: Channel) -> str:
        return ", ".join(str(words_of(code)) for code in channel.lane.holds) or "—"

    @display(description=_("pause between broadcast messages"))
    def pace(self, channel: Channel) -> Any:
        lane = channel.lane
        first, last = lane.broadcast_gap, lane.broadcast_gap + lane.broadcast_gap_jitter
        return _("%(first)s to %(last)s seconds") % {"first": f"{first:g}", "last": f"{last:g}"}


@admin.register(Message)
class MessageAdmin(TenantAdmin):
    list_display = ("created_at", "direction", "status_words", "address", "short_text", "channel", "why")
    list_filter = ("direction", "status", ("channel", RelatedFilter))
    list_select_related = ("channel",)
    search_fields = ("=address", "=provider_id")
    search_help_text = _("A whole address (5511999990001@c.us) or WhatsApp id.")
    # Ids are by time, and the primary key is their index.
    ordering = ("-pk",)
    fields = (
        "direction", "status_words", "why", "error_detail", "text", "address", "contact", "channel", "origin",
        "attempt", "provider_id", "created_at", "sent_at", "delivered_at", "read_at", "updated_at",
    )  # fmt: skip
    readonly_fields = fields

    @display(description=_("status"), label=MESSAGE_COLOURS)
    def status_words(self, message: Message) -> Labelled:
        return Labelled(message.status, message.get_status_display())

    @display(description=_("text"))
    def short_text(self, message: Message) -> str:
        return message.text[:60] + ("…" if len(message.text) > 60 else "")

    @display(description=_("why"))
    def why(self, message: Message) -> Any:
        code = message.error_code or message.waiting_code
        return words_of(code) if code else "—"


@admin.register(WebhookEvent)
class WebhookEventAdmin(TenantAdmin):
    """Bodies hold what people wrote: the admins of their organization see them, and nobody else there."""

    see = ADMINS
    list_display = ("received_at", "event_type", "state_words", "channel", "attempts", "error")
    list_filter = ("state", ("channel", RelatedFilter))
    list_select_related = ("channel",)
    search_fields = ("=request_id",)
    ordering = ("-pk",)
    fields = (
        "event_type", "state_words", "error", "attempts", "channel", "organization", "provider", "request_id",
        "received_at", "applied_at", "next_try_at", "sent_headers", "payload",
    )  # fmt: skip
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).defer("body")
        return rows

    @display(
        description=_("state"),
        label={"received": "info", "applied": "success", "error": "warning", "dead": "danger"},
    )
    def state_words(self, event: WebhookEvent) -> Labelled:
        return Labelled(event.state, event.get_state_display())

    @display(description=_("headers"))
    def sent_headers(self, event: WebhookEvent) -> SafeString:
        return _pre(json.dumps(event.headers, ensure_ascii=False, indent=2))

    @display(description=_("payload"))
    def payload(self, event: WebhookEvent) -> SafeString:
        body = bytes(event.body)
        try:
            text = json.dumps(json.loads(body), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            text = body.decode("utf-8", "replace")
        return _pre(text[:_SHOWN_BYTES])


def _pre(text: str) -> SafeString:
    # A lone surrogate can't be sent to a browser.
    shown = text.encode("utf-8", "backslashreplace").decode()
    return format_html('<pre class="console-pre">{}</pre>', shown)


@admin.register(CronRun)
class CronRunAdmin(InstallationAdmin):
    list_display = ("name", "started_at", "took", "items_processed", "problems")
    ordering = ("-pk",)
    fields = ("name", "started_at", "finished_at", "took", "items_processed", "problems")
    readonly_fields = fields

    @display(description=_("took"))
    def took(self, run: CronRun) -> Any:
        if run.finished_at is None:
            return _("not finished")
        return _("%(seconds)s s") % {"seconds": f"{(run.finished_at - run.started_at).total_seconds():.1f}"}

    @display(description=_("errors"))
    def problems(self, run: CronRun) -> str:
        return "; ".join(str(error) for error in run.errors) or "—"
