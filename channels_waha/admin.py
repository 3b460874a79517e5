"""WhatsApp sessions in the console: state in words, and pairing by QR code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from channels_waha import lifecycle, services
from channels_waha.models import ChannelSession
from events import services as events
from messaging.adapters import ChannelError
from messaging.words import words_of
from permissions.admin_base import Labelled, display, signed_in
from permissions.admin_steps import ConsoleForm, OrganizationForm, Refused, Step, StepAdmin, Text

log = logging.getLogger(__name__)

Status = ChannelSession.Status
_SENTENCES: dict[str, Text] = {
    Status.STOPPED: _("Stopped"),
    Status.STARTING: _("Starting…"),
    Status.SCAN_QR_CODE: _("Scan the QR code"),
    Status.WORKING: _("Connected"),
    Status.FAILED: _("Failed"),
}
_COLOURS = {
    Status.WORKING.value: "success",
    Status.SCAN_QR_CODE.value: "warning",
    Status.STARTING.value: "info",
    Status.FAILED.value: "danger",
}
# How often the pairing page asks; the picture is fetched anew every third time.
_ASK_SECONDS = 4
_PICTURE_SECONDS = 15


@contextmanager
def _refusals() -> Iterator[None]:
    """WAHA's errors in words for people."""
    try:
        yield
    except ChannelError as error:
        log.warning("WAHA refused a call of the console: %s", error.code)
        raise Refused(str(words_of(error.code))) from error
    except lifecycle.SessionBusy as error:
        raise Refused(str(_("This number is being worked on already: try again in a moment."))) from error


class NewSessionForm(OrganizationForm):
    display_name = forms.CharField(label=_("name"), max_length=120, help_text=_("For example: Sales, or Store 2."))


def _connect(request: HttpRequest, session: ChannelSession, _data: dict[str, Any]) -> HttpResponse:
    with _refusals():
        lifecycle.connect(session)
    return HttpResponseRedirect(request.path.removesuffix("connect/") + "pair/")


def _stop(_request: HttpRequest, session: ChannelSession, _data: dict[str, Any]) -> Text:
    with _refusals():
        lifecycle.stop(session)
    return _("The number is stopped. Messages wait until it is connected again.")


def _relink(request: HttpRequest, session: ChannelSession, _data: dict[str, Any]) -> HttpResponse:
    with _refusals():
        lifecycle.relink(session)
    return HttpResponseRedirect(request.path.removesuffix("relink/") + "pair/")


def _confirm_phone(request: HttpRequest, session: ChannelSession, _data: dict[str, Any]) -> Text:
    services.confirm_phone(session_id=session.pk, actor=events.user(signed_in(request)), now=timezone.now())
    return _("Confirmed: the number sends again.")


def _works(session: ChannelSession) -> bool:
    return session.status.upper() == Status.WORKING


@admin.register(ChannelSession)
class ChannelSessionAdmin(StepAdmin):
    add_form = NewSessionForm
    add_title = _("Connect a number")
    add_hint = _("Name the number; on the next page you scan its QR code with the phone.")
    list_display = ("display_name", "state", "status_changed_at", "phone", "last_health_check_at", "organization")
    list_select_related = ("organization", "channel")
    search_fields = ("display_name", "phone_number", "session_name")
    ordering = ("display_name",)
    fields = (
        "display_name", "state", "status_changed_at", "phone", "channel", "organization", "session_name",
        "last_health_check_at", "engine", "server_version", "is_wanted", "created_at",
    )  # fmt: skip
    readonly_fields = fields
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "connect",
            _("Connect"),
            _connect,
            lambda _session: _("WAHA starts the session; then a QR code is shown, which you scan with the phone."),
            offered=lambda session: not _works(session),
            icon="qr_code",
            variant="primary",
        ),
        Step(
            "confirm-phone",
            _("Confirm new phone"),
            _confirm_phone,
            lambda session: (
                _("Another WhatsApp account was connected: %(phone)s. Do you want to send from it?")
                % {"phone": session.phone_number}
            ),
            form=ConsoleForm,
            offered=lambda session: services.PHONE_BEFORE in session.metadata,
            icon="verified",
            variant="primary",
        ),
        Step(
            "stop",
            _("Stop"),
            _stop,
            lambda _session: _("Nothing is sent or received by this number until you connect it again."),
            offered=lambda session: session.status.upper() != Status.STOPPED,
            icon="stop_circle",
            variant="danger",
        ),
        Step(
            "relink",
            _("New QR code"),
            _relink,
            lambda _session: _("The phone is unlinked, and a new QR code is shown. Messages wait until it is scanned."),
            offered=lambda session: session.status.upper() != Status.STOPPED,
            icon="link_off",
            variant="danger",
        ),
    )

    def get_urls(self) -> list[URLPattern]:
        pages = (("pair", self.pair_view), ("pairing", self.pairing_view), ("qr", self.qr_view))
        mine = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
            )
            for name, view in pages
        ]
        return [*mine, *super().get_urls()]

    def add(self, request: HttpRequest, data: dict[str, Any]) -> HttpResponse:
        session = services.create_session(**data, actor=events.user(signed_in(request)), now=timezone.now())
        return HttpResponseRedirect(self.url_of("connect", session.pk))

    def pair_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The page on which a phone is linked."""
        session = self._acted_on(request, object_id)
        if isinstance(session, HttpResponse):
            return session
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Connect a number"),
            "subtitle": str(session),
            "back": self.url_of("change", session.pk),
            **self._pairing(session),
        }
        return TemplateResponse(request, "console/pair.html", context)

    def pairing_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The live part of that page: asks WAHA, and stops once the phone is linked or the session has failed."""
        session = self._acted_on(request, object_id)
        if isinstance(session, HttpResponse):
            return session
        trouble = ""
        try:
            with _refusals():
                session = lifecycle.refresh(session)
        except Refused as refusal:
            trouble = str(refusal)
        context = {**self._pairing(session), "trouble": trouble}
        headers = {"X-Live": "1", "Cache-Control": "no-store"}
        return TemplateResponse(request, "console/pairing.html", context, headers=headers)

    def qr_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The QR code as a picture, kept nowhere: whoever scans it reads the account."""
        session = self._acted_on(request, object_id)
        if isinstance(session, HttpResponse):
            return session
        if session.status.upper() != Status.SCAN_QR_CODE:
            raise Http404
        try:
            picture = lifecycle.qr_png(session)
        except ChannelError as error:
            log.warning("no QR code: %s", error.code)
            return HttpResponse(status=502, headers={"Cache-Control": "no-store"})
        return HttpResponse(picture, content_type="image/png", headers={"Cache-Control": "no-store"})

    def _acted_on(self, request: HttpRequest, object_id: str) -> Any:
        session = self.found(request, object_id)
        if isinstance(session, ChannelSession) and not self.holds(request, session, self.act):
            raise PermissionDenied
        return session

    def _pairing(self, session: ChannelSession) -> dict[str, Any]:
        status = session.status.upper()
        ended = status in {Status.WORKING, Status.FAILED, Status.STOPPED}
        return {
            "session": session,
            "status": status,
            "sentence": _SENTENCES.get(status, session.status),
            "live_seconds": "" if ended else _ASK_SECONDS,
            "live_url": self.url_of("pairing", session.pk),
            # Under one address the browser keeps the picture; a new address fetches the next one.
            "picture": f"{self.url_of('qr', session.pk)}?{int(timezone.now().timestamp() // _PICTURE_SECONDS)}",
            "connect_url": self.url_of("connect", session.pk),
        }

    @display(description=_("state"), label=_COLOURS)
    def state(self, session: ChannelSession) -> Labelled:
        status = session.status.upper()
        return Labelled(status, _SENTENCES.get(status, session.status))

    @display(description=_("phone"), ordering="phone_number")
    def phone(self, session: ChannelSession) -> str:
        return session.phone_number or "—"
