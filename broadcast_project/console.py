"""The console's frame: its first page, and the way to every other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from audience.models import Contact, Group
from broadcasts import screen, selectors
from broadcasts.models import Broadcast
from channels_waha.models import ChannelSession
from messaging.models import Channel
from permissions.admin_base import ADMINS, READERS, reach

_MOST_SHOWN = 20
# Title, then pages: model's label, icon.
_Pages = tuple[tuple[str, str, str], ...]


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the side bar, with the pages that the person may see."""
    groups: list[tuple[str, _Pages]] = [
        (
            _("Sending"),
            (
                (_("Broadcasts"), "broadcasts.broadcast", "campaign"),
                (_("People of broadcasts"), "broadcasts.recipient", "groups"),
                (_("Messages"), "messaging.message", "chat"),
            ),
        ),
        (
            _("Numbers"),
            (
                (_("WhatsApp sessions"), "channels_waha.channelsession", "qr_code"),
                (_("Numbers and limits"), "messaging.channel", "speed"),
            ),
        ),
        (
            _("People"),
            (
                (_("Contacts"), "audience.contact", "person"),
                (_("Groups"), "audience.group", "group"),
                (_("Members of groups"), "audience.groupmember", "list"),
            ),
        ),
        (
            _("Team and access"),
            (
                (_("API keys"), "permissions.apikey", "key"),
                (_("Organizations"), "permissions.organization", "store"),
                (_("Members"), "permissions.membership", "badge"),
                (_("Teams"), "permissions.team", "diversity_3"),
                (_("Leaders and members of teams"), "permissions.teammember", "supervisor_account"),
                (_("Users"), "permissions.user", "account_circle"),
            ),
        ),
        (
            _("What happened"),
            (
                (_("Events"), "events.event", "history"),
                (_("Raw webhooks"), "messaging.webhookevent", "webhook"),
                (_("Periodic runs"), "messaging.cronrun", "schedule"),
                (_("Periodic tasks"), "django_celery_beat.periodictask", "update"),
            ),
        ),
    ]
    home = {"title": _("Start"), "icon": "home", "link": reverse("admin:index")}
    shown: list[dict[str, Any]] = [{"title": None, "items": [home]}]
    for title, pages in groups:
        items = [_item(*page) for page in pages if _may_see(request, page[1])]
        if items:
            shown.append({"title": title, "items": items})
    return shown


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The first page: what is being sent, and how the numbers are."""
    mine = reach(request)
    context["title"] = _("Start")
    context["reads"] = mine.anywhere(READERS)
    context["acts"] = mine.anywhere(ADMINS)
    if not context["reads"]:
        return context
    broadcasts = mine.within(Broadcast.unscoped.all(), "organization", READERS)
    sessions = mine.within(ChannelSession.unscoped.all(), "organization", READERS)
    context["running"] = _running(broadcasts)
    context["numbers"] = _numbers(sessions.select_related("channel__lane", "channel__organization", "organization"))
    context["steps_left"] = _steps_left(request) if not broadcasts.exists() else []
    return context


def _running(broadcasts: Any) -> list[dict[str, Any]]:
    found = list(broadcasts.filter(status__in=screen.OPEN).select_related("group").order_by("-pk")[:_MOST_SHOWN])
    tallies = selectors.tallies(found)
    return [
        {
            "broadcast": broadcast,
            "tally": tallies[broadcast.pk],
            "bar": screen.bar(tallies[broadcast.pk]),
            "colour": screen.COLOURS.get(broadcast.status, "default"),
            "url": reverse("admin:broadcasts_broadcast_change", args=[broadcast.pk]),
        }
        for broadcast in found
    ]


def _numbers(sessions: Any) -> list[dict[str, Any]]:
    pages = admin.site.get_model_admin(ChannelSession)
    channels = admin.site.get_model_admin(Channel)
    shown = []
    for session in sessions.order_by("display_name")[:_MOST_SHOWN]:
        status, sentence = pages.state(session)  # type: ignore[attr-defined]
        colour = pages.state.label.get(status, "default")  # type: ignore[attr-defined]
        shown.append(
            {
                "session": session,
                "sentence": sentence,
                "colour": colour,
                "since": _since(session.status_changed_at),
                "today": channels.today(session.channel),  # type: ignore[attr-defined]
                "held_by": channels.held_by(session.channel) if session.channel.lane.holds else "",  # type: ignore[attr-defined]
                "url": reverse("admin:channels_waha_channelsession_change", args=[session.pk]),
            }
        )
    return shown


def _steps_left(request: HttpRequest) -> list[dict[str, Any]]:
    """What a new organization does first, and whether it is done."""
    mine = reach(request)
    works = mine.within(ChannelSession.unscoped.filter(status="WORKING"), "organization", READERS).exists()
    people = mine.within(Contact.unscoped.all(), "organization", READERS).exists()
    groups = mine.within(Group.unscoped.all(), "organization", READERS).exists()
    return [
        {
            "done": works,
            "text": _("Connect a number: scan the QR code with the phone."),
            "url": reverse("admin:channels_waha_channelsession_add"),
        },
        {"done": groups, "text": _("Make a group."), "url": reverse("admin:audience_group_add")},
        {
            "done": people,
            "text": _("Add people to the group."),
            "url": reverse("admin:audience_group_changelist"),
        },
        {
            "done": False,
            "text": _("Issue an API key, with which your system posts its first broadcast."),
            "url": reverse("admin:permissions_apikey_add"),
        },
    ]


def _may_see(request: HttpRequest, label: str) -> bool:
    return any(
        model._meta.label_lower == label and page.has_module_permission(request)
        for model, page in admin.site._registry.items()
    )


def _item(title: str, label: str, icon: str) -> dict[str, Any]:
    app, model = label.split(".")
    link = reverse(f"admin:{app}_{model}_changelist")
    return {"title": title, "icon": icon, "link": link}


def _since(moment: datetime) -> str:
    """For how long something has been so, in words."""
    if timezone.now() - moment < timedelta(minutes=1):
        return _("Since just now")
    return _("For %(since)s") % {"since": timesince(moment)}
