"""Contacts and groups: who somebody is, and to which audiences he belongs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from audience import identifying, phones
from audience.models import Contact, Group, GroupMember
from audience.phones import Phone, PhoneRejected, WhatsAppId
from events import services as events
from events.services import Actor
from permissions.models import Organization, Team, User


class ExternalIdTaken(Exception):
    """Another contact of the organization has this external id."""

    def __init__(self, external_ids: Collection[str] = ()) -> None:
        super().__init__(self.__doc__)
        self.external_ids = sorted(set(external_ids))


class GroupExists(Exception):
    """Another group of the organization has this external id."""


class GroupNeedsAnOwner(Exception):
    """A group belongs to a team or to a person of its own organization."""


def contact_for_phone(
    *, organization: Organization, phone: Phone, now: datetime, name: str = "", actor: Actor = events.SYSTEM
) -> Contact:
    """The one contact behind a phone under any spelling; made where nobody has it.

    Of writers who come at once, each with another spelling, all get the same contact. Contacts that turn out to
    be one person are merged. Until the end of the transaction nobody merges it away.
    """
    person = identifying.Person.of_phone(phone)
    return identifying.one_contact(organization=organization, person=person, now=now, name=name, actor=actor)


def contact_for_whatsapp_ids(
    *,
    organization: Organization,
    whatsapp_ids: Sequence[WhatsAppId],
    now: datetime,
    name: str = "",
    actor: Actor = events.SYSTEM,
) -> Contact:
    """The one contact behind ids that WhatsApp itself says are one person: a chat's phone, its LID, its BSUID.

    Whatever was known of them apart is merged, opt-outs included. Any digits are a phone here, real or not, and
    a LID's or BSUID's never are. Raises NoPersonsId where one of them is a group's, a channel's or the system's.
    """
    person = identifying.Person.of_whatsapp_ids(whatsapp_ids)
    return identifying.one_contact(organization=organization, person=person, now=now, name=name, actor=actor)


def add_contact(
    *,
    organization: Organization,
    phone: str,
    now: datetime,
    name: str = "",
    external_id: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Contact:
    """A contact by a phone as somebody wrote it, or the one that has it.

    Of a known contact, name and external id are filled where they were missing and the given attributes are
    set; a block is never lifted. Raises PhoneRejected and ExternalIdTaken.
    """
    parsed = phones.parse(phone, region=organization.region)
    try:
        with transaction.atomic():
            contact = contact_for_phone(organization=organization, phone=parsed, now=now, name=name)
            return _learn(contact, name, external_id, attributes or {})
    except IntegrityError as error:
        raise ExternalIdTaken([external_id] if external_id else []) from error


def create_group(
    *,
    organization: Organization,
    external_id: str,
    name: str,
    now: datetime,
    team: Team | None = None,
    owner: User | None = None,
) -> Group:
    """A group of a team, of a person, or of both. Raises GroupExists and GroupNeedsAnOwner."""
    if team is None and owner is None:
        raise GroupNeedsAnOwner(GroupNeedsAnOwner.__doc__)
    if team is not None and team.organization_id != organization.pk:
        raise GroupNeedsAnOwner(GroupNeedsAnOwner.__doc__)
    try:
        with transaction.atomic():
            return Group.objects.create(
                organization=organization, external_id=external_id, name=name, team=team, owner=owner, created_at=now
            )
    except IntegrityError as error:
        raise GroupExists(GroupExists.__doc__) from error


def add_member(
    *,
    group: Group,
    given_phone: str,
    now: datetime,
    name: str = "",
    external_id: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> GroupMember:
    """A line of a group, its phone kept as it came; active again where the group had the very line.

    A phone that is none makes a line without contact, which no broadcast reaches. Raises ExternalIdTaken.
    """
    organization = group.organization
    with transaction.atomic():
        try:
            contact = add_contact(
                organization=organization,
                phone=given_phone,
                now=now,
                name=name,
                external_id=external_id,
                attributes=attributes,
            )
        except PhoneRejected:
            contact = None
        line = GroupMember(
            organization=organization, group=group, contact=contact, given_phone=given_phone, name=name, created_at=now
        )
        GroupMember.unscoped.bulk_create(
            [line],
            update_conflicts=True,
            unique_fields=["group", "given_phone"],
            update_fields=["contact", "status", *(["name"] if name else [])],
        )
        return GroupMember.objects.of(organization).get(group=group, given_phone=given_phone)


def deactivate_member(*, member: GroupMember) -> None:
    """Take a line out of the audience; it stays, and broadcasts frozen before keep it."""
    member.status = GroupMember.Status.INACTIVE
    member.save(update_fields=["status"])


def _learn(contact: Contact, name: str, external_id: str | None, attributes: Mapping[str, Any]) -> Contact:
    if not (name or external_id or attributes):
        return contact
    # Weaker than a plain lock, so that a freeze may refer to the contact meanwhile.
    person = Contact.objects.of(contact.organization_id).select_for_update(no_key=True).get(pk=contact.pk)
    person.name = person.name or name
    person.external_id = person.external_id or external_id
    person.attributes = {**person.attributes, **attributes}
    person.save(update_fields=["name", "external_id", "attributes", "updated_at"])
    return person
