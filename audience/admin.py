"""Contacts and groups in the console."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from audience import consent, phones, services
from audience.models import ConsentEvent, Contact, ContactAddress, Group, GroupMember
from audience.phones import PhoneRejected
from events import services as events
from events.admin import names_of
from permissions.admin_base import (
    ADMINS,
    EVERYONE,
    Labelled,
    Role,
    by_uuid,
    display,
    people,
    plain,
    reach,
    signed_in,
)
from permissions.admin_steps import ConsoleForm, OrganizationForm, Refused, Step, StepAdmin, Text, refusing
from permissions.models import Team, User

_MOST_LINES = 100
STAFF = frozenset({Role.ADMIN, Role.ATTENDANT})


class ReasonForm(ConsoleForm):
    reason = forms.CharField(
        label=_("reason"), max_length=200, help_text=_("It stays in this person's history: nobody can delete it.")
    )


class NewContactForm(OrganizationForm):
    roles = STAFF
    phone = forms.CharField(label=_("phone"), max_length=64, help_text=_("With area code: 11 99999-0001"))
    name = forms.CharField(label=_("name"), max_length=255, required=False)


def _block(request: HttpRequest, contact: Contact, data: dict[str, Any]) -> Text:
    consent.block(contact=contact, **data, actor=events.user(signed_in(request)), now=timezone.now())
    return _("Blocked: %(name)s gets no more automatic messages.") % {"name": contact}


def _unblock(request: HttpRequest, contact: Contact, data: dict[str, Any]) -> Text:
    consent.unblock(contact=contact, **data, actor=events.user(signed_in(request)), now=timezone.now())
    return _("Unblocked: %(name)s may get automatic messages again.") % {"name": contact}


def _release(request: HttpRequest, contact: Contact, data: dict[str, Any]) -> Text:
    consent.release(contact=contact, **data, actor=events.user(signed_in(request)), now=timezone.now())
    return _("Released: %(name)s may get automatic messages again.") % {"name": contact}


@admin.register(Contact)
class ContactAdmin(StepAdmin):
    see = EVERYONE
    act = STAFF
    add_form = NewContactForm
    add_title = _("New contact")
    list_display = ("shown_name", "shown_phone", "state", "blocked_at", "created_at")
    list_filter = ("is_blocked", "is_on_hold")
    search_fields = ("name", "identity", "=external_id")
    ordering = ("-pk",)
    fields = (
        "name", "shown_phone", "state", "blocked_at", "blocked_reason", "external_id", "attributes",
        "organization", "created_at",
    )  # fmt: skip
    readonly_fields = ("shown_phone", "state")
    change_form_outer_after_template = "console/contact.html"
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "block",
            _("Block"),
            _block,
            lambda contact: (
                _("%(name)s gets no more automatic messages, those in the queue included.") % {"name": contact}
            ),
            form=ReasonForm,
            roles=STAFF,
            offered=lambda contact: not contact.is_blocked,
            icon="block",
            variant="danger",
        ),
        Step(
            "unblock",
            _("Unblock"),
            _unblock,
            lambda contact: (
                _("Only where %(name)s asked for it: whoever said stop must not be written to.") % {"name": contact}
            ),
            form=ReasonForm,
            roles=ADMINS,
            offered=lambda contact: contact.is_blocked,
            icon="lock_open",
        ),
        Step(
            "release",
            _("End hold"),
            _release,
            lambda contact: _("Automatic messages to %(name)s go on.") % {"name": contact},
            form=ReasonForm,
            roles=STAFF,
            offered=lambda contact: contact.is_on_hold,
            icon="play_arrow",
        ),
    )

    def add(self, request: HttpRequest, data: dict[str, Any]) -> Contact:
        try:
            return services.add_contact(**data, now=timezone.now())
        except PhoneRejected as rejection:
            raise Refused(str(problem(rejection))) from rejection

    def page_context(self, request: HttpRequest, obj: Contact) -> dict[str, Any]:
        ledger = list(ConsentEvent.objects.of(obj.organization_id).filter(contact=obj)[:_MOST_LINES])
        names = names_of([line.actor for line in ledger], {obj.organization_id})
        seen = ContactAddress.objects.of(obj.organization_id).filter(contact=obj).order_by("kind", "value")
        return {
            "ledger": [{"line": line, "who": names.get(line.actor, line.actor)} for line in ledger],
            "addresses": seen[:_MOST_LINES],
        }

    @display(description=_("name"), ordering="name")
    def shown_name(self, contact: Contact) -> str:
        return str(contact)

    @display(description=_("phone"), ordering="identity")
    def shown_phone(self, contact: Contact) -> str:
        return f"+{contact.identity}" if contact.identity else "—"

    @display(description=_("state"), label={"blocked": "danger", "held": "warning", "free": "success"})
    def state(self, contact: Contact) -> Labelled:
        if contact.is_blocked:
            return Labelled("blocked", _("blocked"))
        if contact.is_on_hold:
            return Labelled("held", _("on hold"))
        return Labelled("free", _("may be written to"))


class NewGroupForm(OrganizationForm):
    person_field = "owner"
    name = forms.CharField(label=_("name"), max_length=200)
    external_id = forms.CharField(
        label=_("external id"), max_length=128, help_text=_("The id by which your own system names the group.")
    )
    team = forms.ModelChoiceField(
        Team.unscoped.none(), label=_("team"), required=False, help_text=_("Its active leaders may broadcast to it.")
    )
    owner = forms.ModelChoiceField(User.objects.none(), label=_("owner"), required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        team, owner = self.fields["team"], self.fields["owner"]
        assert isinstance(team, forms.ModelChoiceField)
        assert isinstance(owner, forms.ModelChoiceField)
        team.queryset = reach(self.request).within(Team.unscoped.order_by("name"), "organization", self.roles)
        owner.queryset = people(self.request, self.roles)


class MemberForm(ConsoleForm):
    given_phone = forms.CharField(label=_("phone"), max_length=255, help_text=_("With area code: 11 99999-0001"))
    name = forms.CharField(label=_("name"), max_length=255, required=False)


def _add_member(request: HttpRequest, group: Group, data: dict[str, Any]) -> Text:
    member = services.add_member(group=group, **data, now=timezone.now())
    if member.contact_id is None:
        messages.warning(request, str(problem_of(member)))
        return _("Added, but no broadcast reaches this line.")
    return _("Added: %(name)s.") % {"name": member}


@admin.register(Group)
class GroupAdmin(StepAdmin):
    see = EVERYONE
    add_form = NewGroupForm
    add_title = _("New group")
    list_display = ("name", "external_id", "team", "owner", "members")
    list_select_related = ("team", "owner")
    search_fields = ("name", "external_id")
    ordering = ("name",)
    fields = ("name", "external_id", "team", "owner_name", "organization", "created_at", "members")
    readonly_fields = ("members", "owner_name")
    owner_name = plain("owner", _("owner"))
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "add-member",
            _("Add person"),
            _add_member,
            lambda group: _("Who joins %(group)s?") % {"group": group},
            form=MemberForm,
            icon="person_add",
        ),
    )

    def add(self, request: HttpRequest, data: dict[str, Any]) -> Group:
        words: dict[type[Exception], Text] = {
            services.GroupExists: _("Another group has this external id."),
            services.GroupNeedsAnOwner: _("A group needs a team or an owner of its organization."),
        }
        with refusing(words):
            return services.create_group(**data, now=timezone.now())

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        active = GroupMember.unscoped.filter(group__in=rows, status=GroupMember.Status.ACTIVE)
        counts = dict(active.values_list("group").annotate(n=Count("pk")).order_by())
        for group in rows:
            group.active_members = counts.get(group.pk, 0)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        group = super().get_object(request, object_id, from_field)
        if group is not None:
            self.prepare(request, [group])
        return group

    @display(description=_("people"))
    def members(self, group: Any) -> SafeString:
        page = reverse("admin:audience_groupmember_changelist")
        return format_html(
            '<a href="{}?group={}" class="text-primary-600 dark:text-primary-500">{}</a>',
            page,
            group.pk,
            group.active_members,
        )


class GroupFilter(admin.SimpleListFilter):
    """One group, chosen from its page: a list of all groups would be long."""

    title = _("group")
    parameter_name = "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        mine = reach(request).within(Group.unscoped.all(), "organization", EVERYONE)
        chosen = by_uuid(mine, "pk", request.GET.get(self.parameter_name)) if self._given(request) else mine.none()
        return [(str(group.pk), group.name) for group in chosen]

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 0

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return by_uuid(queryset, "group", self.value())

    def _given(self, request: HttpRequest) -> bool:
        return self.parameter_name in request.GET


def _deactivate(_request: HttpRequest, member: GroupMember, _data: dict[str, Any]) -> Text:
    services.deactivate_member(member=member)
    return _("The line is no part of the audience any more.")


@admin.register(GroupMember)
class GroupMemberAdmin(StepAdmin):
    """Lines of groups, with the phone as it was given and what is wrong with it."""

    see = EVERYONE
    list_display = ("name", "given_phone", "group", "contact", "status", "what_is_wrong")
    list_filter = (GroupFilter, "status")
    list_select_related = ("group", "contact", "organization")
    search_fields = ("name", "given_phone")
    ordering = ("-pk",)
    fields = ("name", "given_phone", "what_is_wrong", "contact", "group", "status", "created_at")
    readonly_fields = fields
    steps: ClassVar[tuple[Step, ...]] = (
        Step(
            "deactivate",
            _("Take out"),
            _deactivate,
            lambda member: _("%(name)s gets no broadcast to this group that is made from now on.") % {"name": member},
            offered=lambda member: member.status == GroupMember.Status.ACTIVE,
            icon="person_remove",
            variant="danger",
        ),
    )

    @display(description=_("problem"))
    def what_is_wrong(self, member: GroupMember) -> Any:
        return "—" if member.contact_id else problem_of(member)


def problem_of(member: GroupMember) -> Text:
    """Why the phone of a line is none; "" where it is one."""
    try:
        phones.parse(member.given_phone, region=member.organization.region)
    except PhoneRejected as rejection:
        return problem(rejection)
    return ""


PROBLEMS = {
    phones.Reason.EMPTY: _("there is no number"),
    phones.Reason.CHARS: _("there are characters that no phone has"),
    phones.Reason.SCIENTIFIC: _("a spreadsheet has cut the number (as in 5,51E+12)"),
    phones.Reason.INVALID: _("no such phone exists: check the digits"),
    phones.Reason.DDD: _("the area code is missing, or there is none like it"),
    phones.Reason.AMBIGUOUS: _("it could be of two countries: write it with + and the country's code"),
    phones.Reason.SERVICE: _("a service number, which has no WhatsApp"),
    phones.Reason.MULTIPLE: _("there are several numbers in one line"),
    phones.Reason.EXTENSION: _("an extension, which has no WhatsApp"),
    phones.Reason.LID: _("an internal id of WhatsApp, not a phone"),
    phones.Reason.BSUID: _("an internal id of WhatsApp, not a phone"),
    phones.Reason.GROUP: _("a WhatsApp group, not a person"),
    phones.Reason.NEWSLETTER: _("a WhatsApp channel, not a person"),
    phones.Reason.BROADCAST: _("a broadcast list, not a person"),
    phones.Reason.SYSTEM: _("an account of WhatsApp itself"),
}


def problem(rejection: PhoneRejected) -> Text:
    """The rejection in the reader's language."""
    return PROBLEMS[rejection.reason]
