"""The audit trail in the console: read, never written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from events.models import Event
from permissions import ids
from permissions.admin_base import TenantAdmin, display, reach
from permissions.models import ApiKey, User

# Stable words of the record, for people. An unknown one is shown as it is.
TYPE_WORDS = {
    "api_key.issued": _("API key issued"),
    "api_key.revoked": _("API key revoked"),
    "api_key.rotated": _("API key rotated"),
    "broadcast.created": _("Broadcast created"),
    "broadcast.started": _("Broadcast started"),
    "broadcast.approved": _("Broadcast approved"),
    "broadcast.paused": _("Broadcast paused"),
    "broadcast.resumed": _("Broadcast resumed"),
    "broadcast.canceled": _("Broadcast canceled"),
    "broadcast.completed": _("Broadcast completed"),
    "broadcast.failed": _("Broadcast failed"),
    "broadcast.retried": _("Failures of a broadcast sent again"),
    "channel.status": _("Number held or freed"),
    "channel_session.created": _("WhatsApp session created"),
    "channel_session.deleted": _("WhatsApp session deleted"),
    "channel_session.reconnected": _("WhatsApp session reconnected"),
    "channel_session.status_changed": _("WhatsApp session changed state"),
    "channel_session.secret_rotated": _("Secret of a WhatsApp session rotated"),
    "contact.blocked": _("Contact blocked"),
    "contact.unblocked": _("Contact unblocked"),
    "contact.held": _("Contact put on hold"),
    "contact.released": _("Contact released from hold"),
    "contact.merged": _("Two contacts turned out to be one person"),
    "contact.opted_out": _("Contact asked to get nothing more"),
    "channel.reserve": _("Reserve marked or in use"),
    "limit.loosened": _("Limit loosened"),
    "limit.tightened": _("Limit tightened"),
    "membership.role_changed": _("Role of a person changed"),
    "message.received": _("Message received"),
    "message.status": _("Message changed state"),
    "organization.created": _("Organization created"),
    "whatsapp_send_failed": _("Message failed"),
    "whatsapp_stop_detected": _("Request to stop detected"),
}
# The page of a subject, by the prefix of its id.
_PAGES = {
    ids.API_KEY: "permissions_apikey",
    ids.BROADCAST: "broadcasts_broadcast",
    ids.CHANNEL: "messaging_channel",
    ids.CONTACT: "audience_contact",
    ids.GROUP: "audience_group",
    ids.MESSAGE: "messaging_message",
    ids.ORGANIZATION: "permissions_organization",
    ids.RECIPIENT: "broadcasts_recipient",
}


class TypeFilter(admin.SimpleListFilter):
    title = _("type")
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(TYPE_WORDS.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(type=self.value()) if self.value() else queryset


@admin.register(Event)
class EventAdmin(TenantAdmin):
    list_display = ("created_at", "what", "subject", "who")
    list_filter = (TypeFilter, "actor_type")
    search_fields = ("=subject",)
    search_help_text = _("Id of a broadcast, contact, number …: for example bc_0199…")
    fields = ("created_at", "what", "type", "subject_page", "who", "organization", "details")
    readonly_fields = fields

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        # Each by an index that has it: ids are by time; an organization's events are indexed by their time.
        return ("-pk",) if reach(request).everything else ("-created_at",)

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        names = names_of([event.actor for event in rows], {event.organization_id for event in rows})
        for event in rows:
            event.actor_name = names.get(event.actor, "")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        event = super().get_object(request, object_id, from_field)
        if event is not None:
            self.prepare(request, [event])
        return event

    @display(description=_("what happened"))
    def what(self, event: Event) -> Any:
        return TYPE_WORDS.get(event.type, event.type)

    @display(description=_("who"))
    def who(self, event: Any) -> str:
        name = getattr(event, "actor_name", "") or event.actor
        kind = event.get_actor_type_display()
        return f"{kind}: {name}" if name else str(kind)

    @display(description=_("subject"))
    def subject_page(self, event: Event) -> str | SafeString:
        prefix = event.subject.partition("_")[0]
        key = ids.decode(prefix, event.subject)
        if key is None or prefix not in _PAGES:
            return event.subject
        try:
            page = reverse(f"admin:{_PAGES[prefix]}_change", args=[key])
        except NoReverseMatch:
            return event.subject
        return format_html('<a href="{}" class="text-primary-600 dark:text-primary-500">{}</a>', page, event.subject)

    @display(description=_("details"))
    def details(self, event: Event) -> SafeString:
        text = json.dumps(event.data, ensure_ascii=False, indent=2)
        return format_html('<pre class="console-pre">{}</pre>', text)


def names_of(actors: Iterable[str], organizations: Iterable[UUID | None]) -> dict[str, str]:
    """Names of the people and keys behind actors' ids, in two queries; keys are of these organizations."""
    wanted = list(actors)
    found = User.objects.filter(pk__in=_keys(wanted, ids.USER))
    mine = ApiKey.unscoped.filter(pk__in=_keys(wanted, ids.API_KEY), organization__in=set(organizations))
    return {ids.encode(ids.USER, user.pk): str(user) for user in found} | {
        ids.encode(ids.API_KEY, key.pk): str(key) for key in mine
    }


def _keys(actors: list[str], prefix: str) -> list[UUID]:
    return [key for key in {ids.decode(prefix, actor) for actor in actors} if key is not None]
