"""Organizations, people, teams and keys in the console."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as DjangoGroup
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from permissions import services
from permissions.admin_base import (
    READERS,
    Labelled,
    RelatedFilter,
    TenantAdmin,
    TenantInline,
    actor,
    display,
    people,
    plain,
    signed_in,
)
from permissions.admin_steps import ConsoleForm, OrganizationForm, Step, StepAdmin, refusing
from permissions.models import ApiKey, Membership, Organization, Scope, Team, TeamMember, User

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _TeamMemberForm = forms.ModelForm[TeamMember]
else:
    from unfold.admin import ModelAdmin as _Unfold

    class _UserAdmin(DjangoUserAdmin, _Unfold):
        """Django's pages for users, in Unfold's clothes."""

    _TeamMemberForm = forms.ModelForm


# Roles are memberships; Django's own groups and permissions grant nothing here.
admin.site.unregister(DjangoGroup)


class SuperAdminEdited(TenantAdmin):
    """Rows that only super-admins change: who belongs where, and as what."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.can_add and request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_change and request.user.is_superuser


class NewOrganizationForm(ConsoleForm):
    name = forms.CharField(label=_("name"), max_length=120)
    slug = forms.CharField(
        label=_("slug"), max_length=24, help_text=_("Part of session names: small letters, digits and hyphens.")
    )
    time_zone = forms.CharField(label=_("time zone"), initial="America/Sao_Paulo")
    region = forms.CharField(label=_("country"), initial="BR", max_length=2)


class ReviewThresholdForm(ConsoleForm):
    number = forms.IntegerField(
        label=_("recipients that need approval"),
        min_value=0,
        max_value=1_000_000,
        help_text=_("A broadcast to more people than this waits for an admin. 0 means every broadcast."),
    )
    reason = forms.CharField(
        label=_("reason"), max_length=200, required=False, help_text=_("It is written into the audit trail.")
    )


def _set_review_threshold(request: HttpRequest, organization: Organization, data: dict[str, Any]) -> Any:
    words: dict[type[Exception], Any] = {
        services.LoosensALimit: _("Only a super-admin may loosen a limit, and gives a reason.")
    }
    with refusing(words):
        services.set_review_threshold(
            organization=organization,
            **data,
            by=signed_in(request),
            actor=actor(request),
            now=timezone.now(),
        )
    return _("From now on this holds for new broadcasts.")


@admin.register(Organization)
class OrganizationAdmin(StepAdmin):
    organization_path = "pk"
    add_form = NewOrganizationForm
    add_title = _("New organization")
    list_display = ("name", "slug", "time_zone", "region", "members")
    search_fields = ("name", "slug")
    ordering = ("name",)
    fields = ("name", "slug", "time_zone", "region", "review_threshold", "created_at")
    steps = (
        Step(
            "review",
            _("Change approval limit"),
            _set_review_threshold,
            lambda organization: (
                _("Now a broadcast to more than %(n)d people waits for an admin's approval.")
                % {"n": organization.review_threshold}
            ),
            form=ReviewThresholdForm,
            icon="how_to_reg",
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        places = Membership.unscoped.filter(organization=OuterRef("pk"), is_active=True).order_by()
        number = places.values("organization").annotate(n=Count("pk")).values("n")
        rows: QuerySet[Any] = super().get_queryset(request).annotate(people=Coalesce(Subquery(number), 0))
        return rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def add(self, request: HttpRequest, data: dict[str, Any]) -> Organization:
        return services.create_organization(**data, actor=actor(request), now=timezone.now())

    @display(description=_("people"), ordering="people")
    def members(self, obj: Any) -> int:
        return int(obj.people)


@admin.register(User)
class UserAdmin(_UserAdmin):
    """Sign-ins: the super-admins' alone. People are switched off, never deleted: their acts bear their names."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    ordering = ("username",)
    filter_horizontal = ()
    actions = None
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Person"), {"fields": ("first_name", "last_name", "email")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser")}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._is_super_admin(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_super_admin(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._is_super_admin(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._is_super_admin(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def _is_super_admin(self, request: HttpRequest) -> bool:
        return request.user.is_active and request.user.is_superuser


class MemberForm(OrganizationForm):
    user = forms.ModelChoiceField(User.objects.none(), label=_("user"))
    role = forms.ChoiceField(choices=Membership.Role.choices, label=_("role"))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _offer(self, "user", User.objects.filter(is_active=True).order_by("username"))


class RoleForm(ConsoleForm):
    role = forms.ChoiceField(choices=Membership.Role.choices, label=_("role"))


def _set_role(request: HttpRequest, place: Membership, data: dict[str, Any]) -> Any:
    services.set_role(
        organization=place.organization,
        user=place.user,
        role=Membership.Role(data["role"]),
        actor=actor(request),
        now=timezone.now(),
    )
    return _("The role has been changed.")


def _end_membership(request: HttpRequest, place: Membership, _data: dict[str, Any]) -> Any:
    services.end_membership(organization=place.organization, user=place.user, actor=actor(request), now=timezone.now())
    return _("%(user)s is no member any more.") % {"user": place.user}


@admin.register(Membership)
class MembershipAdmin(StepAdmin):
    add_form = MemberForm
    add_title = _("Add a person to an organization")
    list_display = ("user", "organization", "role", "is_active")
    list_filter = ("role", "is_active")
    list_select_related = ("user", "organization")
    search_fields = ("user__username", "user__first_name", "user__last_name")
    ordering = ("user__username",)
    fields = ("user_name", "organization", "role", "is_active", "created_at")
    readonly_fields = ("user_name",)
    user_name = plain("user", _("user"))
    steps = (
        Step(
            "role",
            _("Change role"),
            _set_role,
            lambda place: _("Which role does %(user)s have from now on?") % {"user": place.user},
            form=RoleForm,
            super_admins_only=True,
            icon="badge",
        ),
        Step(
            "end",
            _("Take out"),
            _end_membership,
            lambda place: (
                _(
                    "%(user)s no longer sees anything of %(organization)s; the keys of this person are refused from"
                    " now on, and the broadcasts pause."
                )
                % {"user": place.user, "organization": place.organization}
            ),
            super_admins_only=True,
            offered=lambda place: place.is_active,
            icon="person_remove",
            variant="danger",
        ),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    def add(self, request: HttpRequest, data: dict[str, Any]) -> Membership:
        role = Membership.Role(data["role"])
        return services.set_role(
            organization=data["organization"],
            user=data["user"],
            role=role,
            actor=actor(request),
            now=timezone.now(),
        )


class TeamMemberInline(TenantInline):
    model = TeamMember
    fields = ("user_name", "role", "status")
    readonly_fields = fields
    user_name = plain("user", _("user"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("user").order_by("user__username")


@admin.register(Team)
class TeamAdmin(SuperAdminEdited):
    can_add = can_change = True
    list_display = ("name", "organization")
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("organization", "name")
    inlines = (TeamMemberInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # A team never moves: its groups and leaders are of its organization.
        return () if obj is None else ("organization",)


class TeamMemberModelForm(_TeamMemberForm):
    """The organization is the team's, and the person belongs to it."""

    class Meta:
        model = TeamMember
        fields = ("team", "user", "role", "status")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        team, user = data.get("team"), data.get("user")
        if team is not None:
            self.instance.organization = team.organization
            members = Membership.objects.of(team.organization).filter(user=user, is_active=True)
            if user is not None and not members.exists():
                self.add_error("user", _("This person is no active member of the team's organization."))
        return data


@admin.register(TeamMember)
class TeamMemberAdmin(SuperAdminEdited):
    can_add = can_change = True
    form = TeamMemberModelForm
    list_display = ("user", "team", "role", "status", "organization")
    list_filter = (("team", RelatedFilter), "role", "status")
    list_select_related = ("user", "team", "organization")
    search_fields = ("user__username", "team__name")
    ordering = ("team__name", "user__username")
    fields = ("team", "user", "role", "status")


class IssueKeyForm(OrganizationForm):
    person_field = "owner"
    owner = forms.ModelChoiceField(
        User.objects.none(),
        label=_("owner"),
        help_text=_("The key may do what its owner may do, and stops when he is switched off."),
    )
    name = forms.CharField(label=_("name"), max_length=120, help_text=_("For example, the system that will use it."))
    scopes = forms.MultipleChoiceField(label=_("scopes"), choices=Scope.choices, initial=[Scope.BROADCAST_SEND.value])
    expires_at = forms.SplitDateTimeField(label=_("expires at"), required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _offer(self, "owner", people(self.request, self.roles))


class RotateKeyForm(ConsoleForm):
    hours = forms.TypedChoiceField(
        label=_("the old secret works for"),
        coerce=int,
        initial=24,
        choices=(
            (24, _("24 hours")),
            (0, _("not a moment longer: it may be in wrong hands")),
            (1, _("1 hour")),
            (7 * 24, _("7 days")),
            (30 * 24, _("30 days")),
        ),
    )


@admin.register(ApiKey)
class ApiKeyAdmin(StepAdmin):
    see = READERS
    add_form = IssueKeyForm
    add_title = _("Issue an API key")
    add_hint = _("The key is shown once, on the next page. Only a fingerprint of it is kept.")
    list_display = ("name", "public_id", "owner", "state", "scope_words", "last_used_at", "expires_at")
    list_filter = (("owner", RelatedFilter),)
    list_select_related = ("owner",)
    search_fields = ("name", "public_id")
    ordering = ("-created_at",)
    fields = (
        "name", "public_id", "owner_name", "organization", "scope_words", "state", "created_at", "last_used_at",
        "rotated_at", "previous_expires_at", "expires_at", "revoked_at",
    )  # fmt: skip
    readonly_fields = ("scope_words", "state", "owner_name")
    owner_name = plain("owner", _("owner"))
    steps = (
        Step(
            "rotate",
            _("Rotate"),
            lambda request, key, data: _rotate(request, key, data),
            lambda _key: _(
                "Makes another secret, which is shown once, on the next page. The old one works on for as long as you"
                " choose, so that every system can be given the new one meanwhile."
            ),
            form=RotateKeyForm,
            offered=lambda key: key.state_at(timezone.now()) == ApiKey.State.ACTIVE,
            icon="autorenew",
        ),
        Step(
            "revoke",
            _("Revoke"),
            lambda request, key, _data: _revoke(request, key),
            lambda _key: _("Whoever uses this key gets 401 from the next request on. This can't be undone."),
            offered=lambda key: key.revoked_at is None,
            icon="block",
            variant="danger",
        ),
    )

    def add(self, request: HttpRequest, data: dict[str, Any]) -> TemplateResponse:
        words: dict[type[Exception], Any] = {
            services.NotAMember: _("The owner is no active member of this organization."),
            services.ExpiryInPast: _("The expiry is in the past."),
        }
        with refusing(words):
            key, plain = services.issue_key(**data, actor=actor(request), now=timezone.now())
        return _shown_once(request, key, plain)

    @display(
        description=_("state"),
        label={"active": "success", "expired": "warning", "revoked": "danger"},
    )
    def state(self, key: ApiKey) -> Labelled:
        state = key.state_at(timezone.now())
        return Labelled(state.value, state.label)

    @display(description=_("scopes"))
    def scope_words(self, key: ApiKey) -> str:
        return ", ".join(str(Scope(scope).label) for scope in key.scopes if scope in Scope.values)


def _shown_once(request: HttpRequest, key: ApiKey, plain: str) -> TemplateResponse:
    """The page with the key itself; no browser keeps it."""
    page = admin.site.get_model_admin(ApiKey)
    assert isinstance(page, ApiKeyAdmin)
    context = {
        **admin.site.each_context(request),
        "opts": page.opts,
        "title": _("Your new key"),
        "key": key,
        "plain": plain,
        "back": page.url_of("changelist"),
    }
    return TemplateResponse(request, "console/new_key.html", context, headers={"Cache-Control": "no-store, private"})


def _rotate(request: HttpRequest, key: ApiKey, data: dict[str, Any]) -> TemplateResponse:
    words: dict[type[Exception], Any] = {
        services.NotAMember: _("The owner is no active member of this organization."),
        services.KeyEnded: _("The key has ended meanwhile."),
    }
    with refusing(words):
        plain = services.rotate_key(
            key=key, overlap=timedelta(hours=data["hours"]), actor=actor(request), now=timezone.now()
        )
    return _shown_once(request, key, plain)


def _revoke(request: HttpRequest, key: ApiKey) -> Any:
    services.revoke_key(key=key, actor=actor(request), now=timezone.now())
    return _("The key is revoked.")


def _offer(form: forms.Form, name: str, choices: QuerySet[Any]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)
    field.queryset = choices
