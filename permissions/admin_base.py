"""The tenant's wall in the console: what a person sees, chooses and reaches is decided here, at the server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise

from permissions import ids, isolation
from permissions.isolation import Sweep
from permissions.models import Membership, Organization, User

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
    _Paginator = Paginator[Any]
else:
    # Unfold carries no types; its classes extend these.
    from unfold.admin import ModelAdmin as _ModelAdmin
    from unfold.admin import TabularInline as _TabularInline

    _Paginator = Paginator

Role = Membership.Role
ADMINS = frozenset({Role.ADMIN})
READERS = frozenset({Role.ADMIN, Role.VIEWER})
EVERYONE = frozenset(Role)
_MOST_CHOICES = 200
# What Django's own filters append to the name of their field.
_FILTER_ENDINGS = ("", "__exact", "__id__exact", "__isnull", "__gte", "__lt")


@dataclass(frozen=True, slots=True)
class Reach:
    """In which organizations a signed-in person is what. A super-admin reaches all of them."""

    everything: bool
    roles: Mapping[UUID, str]

    def covers(self, organization_id: UUID | None, roles: Collection[str]) -> bool:
        """Whether the person holds one of these roles there. Rows of nobody are the super-admins'."""
        if self.everything:
            return True
        return organization_id is not None and self.roles.get(organization_id) in roles

    def anywhere(self, roles: Collection[str]) -> bool:
        return self.everything or any(role in roles for role in self.roles.values())

    def within(self, rows: QuerySet[Any], path: str, roles: Collection[str]) -> QuerySet[Any]:
        """The rows of the organizations in which the person holds one of these roles."""
        if self.everything:
            return rows
        keys = [key for key, role in self.roles.items() if role in roles]
        # "=" and "IN" of one are planned differently: a sorted index serves the first.
        return rows.filter(**({path: keys[0]} if len(keys) == 1 else {f"{path}__in": keys}))


def reach(request: HttpRequest) -> Reach:
    """The reach of the request's person, read once per request: a role taken away is gone at the next click."""
    known = getattr(request, "_reach", None)
    if isinstance(known, Reach):
        return known
    person = request.user
    if not isinstance(person, User) or not person.is_active or not person.is_staff:
        found = Reach(everything=False, roles={})
    elif person.is_superuser:
        found = Reach(everything=True, roles={})
    else:
        places = Membership.unscoped.filter(user=person, is_active=True)
        with isolation.across_tenants(Sweep.SIGN_IN, person.pk):
            found = Reach(everything=False, roles=dict(places.values_list("organization_id", "role")))
    request._reach = found  # type: ignore[attr-defined]
    return found


def organizations(request: HttpRequest, roles: Collection[str] = EVERYONE) -> QuerySet[Organization]:
    """The organizations in which the person holds one of these roles."""
    return reach(request).within(Organization.objects.all(), "pk", roles)


def people(request: HttpRequest, roles: Collection[str] = EVERYONE) -> QuerySet[User]:
    """The active members of those organizations."""
    places = reach(request).within(Membership.unscoped.filter(is_active=True), "organization", roles)
    return User.objects.filter(is_active=True, pk__in=places.values("user")).order_by("username")


@dataclass(frozen=True, slots=True)
class Person:
    """The request's person as the audit trail names him."""

    id: str
    type: str = "user"


def actor(request: HttpRequest) -> Person:
    return Person(ids.encode(ids.USER, signed_in(request).pk))


def signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


class CappedPaginator(_Paginator):
    """Pages of the first ``most`` rows: no page of the console counts a million."""

    most = 10_000

    @property
    def is_capped(self) -> bool:
        """Whether there may be more rows than are counted."""
        return self.count >= self.most

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return rows.order_by().values("pk")[: self.most].count()
        return len(rows)


class TenantAdmin(_ModelAdmin):
    """Rows of the person's organizations, read-only unless a room says otherwise. Nothing is ever deleted."""

    organization_path: ClassVar[str] = "organization"
    # Who sees the rows, and who may change or act on them.
    see: ClassVar[frozenset[Role]] = READERS
    act: ClassVar[frozenset[Role]] = ADMINS
    can_add: ClassVar[bool] = False
    can_change: ClassVar[bool] = False

    actions = None
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    list_per_page = 50
    list_filter_sheet = False
    # Wide lists stay inside the page on a phone.
    list_fullwidth = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return reach(request).within(super().get_queryset(request), self.organization_path, self.see)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """The room's filters, and one by organization where the person has several."""
        chosen = list(super().get_list_filter(request))
        if self.organization_path == "organization":
            chosen.insert(0, OrganizationFilter)
        return chosen

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only what a filter of this list offers.

        Django also allows any column of the row: an address bar that asks for digests or secrets by prefix.
        """
        offered: set[str] = set()
        for item in self.get_list_filter(request):
            if isinstance(item, type) and issubclass(item, admin.SimpleListFilter):
                offered.add(str(item.parameter_name))
            else:
                field = item if isinstance(item, str) else item[0]
                offered.update(f"{field}{ending}" for ending in _FILTER_ENDINGS)
        return lookup in offered

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.holds(request, obj, self.see)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.can_add and self.holds(request, None, self.act)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_change and self.holds(request, obj, self.act)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changes = super().get_changelist_instance(request)
        rows = list(changes.result_list)
        self.prepare(request, rows)
        changes.result_list = rows
        if not changes.query and not changes.has_active_filters:
            # Nothing was left out, so there is no "show all" to offer.
            changes.full_result_count = changes.result_count
        return changes

    def prepare(self, request: HttpRequest, rows: list[Any]) -> None:
        """Fetch, for the rows of one page at once, what their cells show."""

    def holds(self, request: HttpRequest, obj: Any, roles: Collection[str]) -> bool:
        """Whether the person holds one of these roles: where the object belongs, or anywhere."""
        if obj is None:
            return reach(request).anywhere(roles)
        return reach(request).covers(self.organization_of(obj), roles)

    def organization_of(self, obj: Any) -> UUID | None:
        """The organization of one row, by ``organization_path``."""
        *steps, last = self.organization_path.split("__")
        for step in steps:
            obj = getattr(obj, step)
        key: UUID | None = obj.pk if last == "pk" else getattr(obj, f"{last}_id")
        return key


class InstallationAdmin(TenantAdmin):
    """Rows of no organization: the super-admins see them, and nobody else."""

    organization_path = ""

    def holds(self, request: HttpRequest, obj: Any, roles: Collection[str]) -> bool:
        return reach(request).everything

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super(TenantAdmin, self).get_queryset(request)
        return rows if reach(request).everything else rows.none()


class TenantInline(_TabularInline):
    """Rows under their parent: seen where the parent is seen, never edited here."""

    extra = 0
    max_num = 0
    can_delete = False
    show_change_link = False
    hide_title = True
    # Pages of the rows under one parent.
    per_page = 50

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The parent's page was reached, so the parent may be seen.
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Labelled(tuple[str, Any]):
    """A state and its words: a coloured label in lists, the plain words on a page."""

    __slots__ = ()

    def __new__(cls, state: str, words: Any) -> Labelled:
        return super().__new__(cls, (state, words))

    def __str__(self) -> str:
        return str(self[1])


Method = TypeVar("Method", bound=Callable[..., Any])


def display(
    *,
    description: str | Promise,
    ordering: str | None = None,
    label: dict[str, str] | None = None,
    boolean: bool = False,
) -> Callable[[Method], Method]:
    """A computed cell. ``label``: colours by state, of a cell that returns Labelled."""

    def mark(method: Method) -> Method:
        marks: dict[str, Any] = {"short_description": description, "admin_order_field": ordering}
        if label is not None:
            marks["label"] = label
        if boolean:
            marks["boolean"] = True
        for name, value in marks.items():
            if value is not None:
                setattr(method, name, value)
        return method

    return mark


def plain(field: str, description: str | Promise) -> Callable[[Any, Any], str]:
    """A cell with a related row's name, without Django's link to a page that the reader may not open."""

    @display(description=description)
    def cell(_admin: Any, row: Any) -> str:
        return str(getattr(row, field) or "—")

    return cell


class OrganizationFilter(admin.SimpleListFilter):
    """By organization, among the person's own. Shown where there are several."""

    parameter_name = "organization"

    def __init__(self, *args: Any) -> None:
        self.title = Organization._meta.verbose_name
        super().__init__(*args)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        found = organizations(request, model_admin.see).values_list("pk", "name")
        choices = [(str(key), name) for key, name in found]
        return choices if len(choices) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return by_uuid(queryset, "organization", self.value())


def by_uuid(rows: QuerySet[Any], field: str, text: str | None) -> QuerySet[Any]:
    """The rows whose field has the id of the address bar; none where that is no id."""
    if not text:
        return rows
    try:
        return rows.filter(**{field: UUID(text)})
    except ValueError:
        return rows.none()


class RelatedFilter(admin.RelatedFieldListFilter):
    """By a related row, among those the person sees: Django's own filter would name every tenant's."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Any:
        if field.remote_field.model is User:
            return [(str(user.pk), str(user)) for user in people(request)[:_MOST_CHOICES]]
        related = model_admin.admin_site.get_model_admin(field.remote_field.model)
        return [(str(row.pk), str(row)) for row in related.get_queryset(request)[:_MOST_CHOICES]]
