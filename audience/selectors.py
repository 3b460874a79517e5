"""Reads: groups, and who of a group may be written to."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from django.db.models import Case, CharField, F, Q, QuerySet, Value, When, Window
from django.db.models.fields.json import JSONField
from django.db.models.functions import Cast, Coalesce, FirstValue, NullIf, RowNumber

from audience.models import Contact, Group, GroupMember, MergedContact
from permissions import ids


class Exclusion(StrEnum):
    """Why a line of a group gets nothing, in the order in which they are asked; the first that holds counts."""

    INVALID_PHONE = "invalid_phone"
    DUPLICATE = "duplicate"
    OPTED_OUT = "opted_out"
    ON_HOLD = "contact_on_hold"


# One row per line: its contact, the phone to write to (or as it was given, where nobody is written to), the
# name, the person's attributes, "" or an Exclusion, whose line stands for a duplicate, and the line's place.
LINE_COLUMNS = ("contact_id", "phone", "person_name", "attributes", "exclusion", "duplicate_of", "place")


class Audience(Protocol):
    """Groups and their people: one interface, so that an external directory can stand in.

    The one of this room is ``groups``; another answers with a query over its own mirror, of the same columns.
    """

    def find(self, *, organization_id: UUID, reference: str) -> Group | None:
        """The group by its id (``grp_…``) or by the caller's own id; None where the organization has none."""
        ...

    def lines(self, group: Group) -> QuerySet[Any, Any]:
        """Who is in the group now, and who of them is left out and why, as a query of LINE_COLUMNS."""
        ...

    def has_attribute(self, *, organization_id: UUID, name: str) -> bool:
        """Whether any person of the organization has a value of this name."""
        ...


class Groups:
    """The audience of our own tables."""

    def find(self, *, organization_id: UUID, reference: str) -> Group | None:
        mine = Group.objects.of(organization_id)
        known_id = ids.decode(ids.GROUP, reference)
        # An id of ours goes first, should a caller have named another group by the same text.
        found = mine.filter(pk=known_id).first() if known_id else None
        return found or mine.filter(external_id=reference).first()

    def lines(self, group: Group) -> QuerySet[Any, Any]:
        order = [F("created_at").asc(), F("id").asc()]
        person = [F("contact_id")]
        lines: QuerySet[Any, Any] = (
            GroupMember.objects.of(group.organization_id)
            .filter(group=group, status=GroupMember.Status.ACTIVE)
            .annotate(
                place=Window(RowNumber(), order_by=order),
                line_of_person=Window(RowNumber(), partition_by=person, order_by=order),
                first_line=Window(FirstValue("given_phone"), partition_by=person, order_by=order),
            )
            .annotate(exclusion=_exclusion())
            .annotate(
                phone=_phone(),
                person_name=Coalesce(NullIf("contact__name", Value("")), "name"),
                attributes=Coalesce("contact__attributes", Cast(Value("{}"), JSONField())),
                duplicate_of=Case(
                    When(exclusion=Exclusion.DUPLICATE, then=F("first_line")),
                    default=Value(""),
                    output_field=CharField(),
                ),
            )
            .order_by()
            .values(*LINE_COLUMNS)
        )
        return lines

    def has_attribute(self, *, organization_id: UUID, name: str) -> bool:
        return Contact.objects.of(organization_id).filter(attributes__has_key=name).exists()


groups: Audience = Groups()


def contact(*, organization_id: UUID, contact_id: UUID) -> Contact | None:
    """The contact of this id; one that was merged is the person it became. None where there is none."""
    found = Contact.objects.of(organization_id).filter(pk=contact_id).first()
    if found is not None:
        return found
    merged = MergedContact.objects.of(organization_id).filter(pk=contact_id).select_related("contact").first()
    return None if merged is None else merged.contact


def subjects_of(person: Contact) -> list[str]:
    """The prefixed ids under which events of a person were recorded, those of merged contacts among them."""
    merged = MergedContact.objects.of(person.organization_id).filter(contact=person).values_list("pk", flat=True)
    return [ids.encode(ids.CONTACT, key) for key in (person.pk, *merged)]


def _exclusion() -> Case:
    # A person without a phone (known by a LID alone) can't be written to by one either.
    return Case(
        When(
            Q(contact__isnull=True) | Q(contact__identity__isnull=True),
            then=Value(Exclusion.INVALID_PHONE.value),
        ),
        When(line_of_person__gt=1, then=Value(Exclusion.DUPLICATE.value)),
        When(contact__is_blocked=True, then=Value(Exclusion.OPTED_OUT.value)),
        When(contact__is_on_hold=True, then=Value(Exclusion.ON_HOLD.value)),
        default=Value(""),
        output_field=CharField(),
    )


def _phone() -> Case:
    return Case(
        When(exclusion__in=[Exclusion.INVALID_PHONE.value, Exclusion.DUPLICATE.value], then=F("given_phone")),
        default=F("contact__identity"),
        output_field=CharField(),
    )
