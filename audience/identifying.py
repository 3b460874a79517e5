"""Whose number, LID or BSUID it is: one contact for one person, whoever asks at the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Self

from django.db import IntegrityError, connection, transaction

from audience import merging
from audience.models import Contact, ContactAddress
from audience.phones import IdKind, Phone, WhatsAppId
from events.services import Actor
from permissions.models import Organization

Kind = ContactAddress.Kind
_KINDS = {IdKind.PHONE: Kind.PHONE, IdKind.LID: Kind.LID, IdKind.BSUID: Kind.BSUID}
# Each turn is lost to a writer or a merge that came first; one lost to all of these is a fault of ours.
_MOST_TURNS = 20


class NoPersonsId(ValueError):
    """The id is no person's: a group's, a channel's, a list's or WhatsApp's own."""


class UnsettledContact(Exception):
    """Others changed the contact each time it was looked for; the work may be tried again."""


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of somebody: ``addresses`` as (kind, value), ``identity`` where a phone is among them."""

    identity: str | None
    addresses: frozenset[tuple[str, str]]

    @classmethod
    def of_phone(cls, phone: Phone) -> Self:
        """Somebody by his number, under all its spellings."""
        return cls(phone.identity, frozenset((Kind.PHONE.value, value) for value in phone.variants))

    @classmethod
    def of_whatsapp_ids(cls, whatsapp_ids: Sequence[WhatsAppId]) -> Self:
        """Somebody by ids that are all his. Raises NoPersonsId."""
        addresses: set[tuple[str, str]] = set()
        identity = None
        for known in whatsapp_ids:
            if known.kind not in _KINDS:
                raise NoPersonsId(NoPersonsId.__doc__)
            kind = _KINDS[known.kind].value
            addresses |= {(kind, value) for value in known.variants or (known.value,)}
            identity = identity or known.identity
        if not addresses:
            raise NoPersonsId(NoPersonsId.__doc__)
        return cls(identity, frozenset(addresses))


def one_contact(*, organization: Organization, person: Person, now: datetime, name: str, actor: Actor) -> Contact:
    """The contact that has all of the person's addresses after this; contacts that shared them are merged.

    Held until the end of the transaction: rows that refer to it may be written.
    """
    made: Contact | None = None
    with transaction.atomic():
        for _turn in range(_MOST_TURNS):
            holders = _holders(organization, person)
            contact = _only(organization, set(holders.values()), actor, now)
            if contact is None:
                contact = made = _create(organization, person, name, now)
            if not _hold(contact):
                continue
            if not _is_named(contact, person):
                continue
            missing = person.addresses - holders.keys()
            if not missing:
                _drop_unused(made, contact)
                return contact
            # Whoever came first with one of them is met at the next turn.
            _add_addresses(contact, missing, now)
    raise UnsettledContact(UnsettledContact.__doc__)


def _holders(organization: Organization, person: Person) -> dict[tuple[str, str], Contact]:
    """Who has which address; under the key of the identity also a contact that has it without its spellings."""
    kinds, values = zip(*person.addresses, strict=True)
    rows = ContactAddress.objects.of(organization).filter(kind__in=set(kinds), value__in=values)
    found = {(row.kind, row.value): row.contact for row in rows.select_related("contact")}
    found = {key: contact for key, contact in found.items() if key in person.addresses}
    if person.identity is not None:
        named = Contact.objects.of(organization).filter(identity=person.identity).first()
        if named is not None and named not in found.values():
            found["identity", person.identity] = named
    return found


def _only(organization: Organization, holders: set[Contact], actor: Actor, now: datetime) -> Contact | None:
    if not holders:
        return None
    ordered = sorted(holders, key=lambda contact: contact.pk)
    return reduce(
        lambda first, second: merging.merge(
            organization=organization, first=first, second=second, actor=actor, now=now
        ),
        ordered,
    )


def _create(organization: Organization, person: Person, name: str, now: datetime) -> Contact:
    fresh = Contact(organization=organization, identity=person.identity, name=name, created_at=now)
    # ON CONFLICT DO NOTHING waits for a writer who is ahead; what he committed is then read.
    Contact.unscoped.bulk_create([fresh], ignore_conflicts=True)
    if person.identity is None:
        return fresh
    return Contact.objects.of(organization).filter(identity=person.identity).first() or fresh


def _hold(contact: Contact) -> bool:
    """Keep it from being merged away until the end of the transaction; False where it is gone already."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM contacts WHERE id = %s FOR KEY SHARE", [contact.pk])
        return cursor.fetchone() is not None


def _is_named(contact: Contact, person: Person) -> bool:
    """Give a contact that had no phone the one that is now known; False where another contact got it meanwhile."""
    if contact.identity is not None or person.identity is None:
        return True
    try:
        with transaction.atomic():
            contact.identity = person.identity
            contact.save(update_fields=["identity", "updated_at"])
    except IntegrityError:
        return False
    return True


def _add_addresses(
    contact: Contact, addresses: set[tuple[str, str]] | frozenset[tuple[str, str]], now: datetime
) -> None:
    # In one order everywhere, so that two writers never wait for each other.
    ContactAddress.unscoped.bulk_create(
        [
            ContactAddress(
                organization_id=contact.organization_id, contact=contact, kind=kind, value=value, created_at=now
            )
            for kind, value in sorted(addresses)
        ],
        ignore_conflicts=True,
    )


def _drop_unused(made: Contact | None, contact: Contact) -> None:
    """A contact without a phone that lost the race for its only address is nobody."""
    if made is not None and made != contact:
        Contact.objects.of(made.organization_id).filter(pk=made.pk).delete()
