"""Two contacts that turn out to be one person become one, with all that refers to either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import connection, models, transaction
from django.utils.module_loading import import_string

from audience import consent, selectors
from audience.models import Contact, MergedContact
from events import services as events
from events.services import Actor
from permissions import ids
from permissions.models import Organization

# The kind of this advisory lock, among those of other rooms.
_LOCK = 20


class References(Protocol):
    """A room above that refers to contacts (settings.CONTACT_REFERENCES), in the transaction of a merge.

    Rows with a foreign key to the contact move by themselves. A room is named where it takes locks that come
    before a contact's, or has rows of which a contact may have but one.
    """

    def lock(self, *, organization_id: UUID, contact_ids: Sequence[UUID]) -> None:
        """Take what is locked before contacts are (streams), in the one order of locks."""
        ...

    def join(self, *, organization_id: UUID, kept: UUID, gone: UUID) -> None:
        """Make one of rows that would clash, before those of ``gone`` move. Both contacts are locked."""
        ...


def merge(*, organization: Organization, first: Contact, second: Contact, actor: Actor, now: datetime) -> Contact:
    """Make one contact of two of an organization; returns the one that is left. Repeatable.

    The one with a phone stays, else the older one; a block or hold of either is in force. Where the two differ
    the one that stays is right. Merges of one organization take turns, whichever way round they name the two.
    Raises Contact.DoesNotExist for a contact that is none of the organization's. Audited: ``contact.merged``.
    """
    with transaction.atomic():
        _take_turns(organization.pk)
        pair = {_present(organization.pk, contact) for contact in (first, second)}
        if len(pair) == 1:
            return pair.pop()
        keys = sorted(contact.pk for contact in pair)
        for room in _rooms():
            room.lock(organization_id=organization.pk, contact_ids=keys)
        locked = Contact.objects.of(organization).select_for_update().filter(pk__in=keys).order_by("pk")
        kept, gone = sorted(locked, key=lambda contact: (contact.identity is None, contact.created_at, contact.pk))
        _merge_locked(kept, gone, actor, now)
    return kept


def hold_off(organization_id: UUID) -> None:
    """Keep merges away until the end of the transaction: it reads contacts now and refers to them later."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, %s))", [str(organization_id), _LOCK])


def _take_turns(organization_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [str(organization_id), _LOCK])


def _present(organization_id: UUID, contact: Contact) -> Contact:
    found = selectors.contact(organization_id=organization_id, contact_id=contact.pk)
    if found is None:
        raise Contact.DoesNotExist
    return found


def _rooms() -> Iterator[References]:
    for path in settings.CONTACT_REFERENCES:
        yield import_string(path)()


def _merge_locked(kept: Contact, gone: Contact, actor: Actor, now: datetime) -> None:
    organization_id = kept.organization_id
    for room in _rooms():
        room.join(organization_id=organization_id, kept=kept.pk, gone=gone.pk)
    _move_rows(kept, gone)
    consent.carry_over(kept=kept, gone=gone, actor=actor, now=now)
    # By itself, not with Django's cascade: a reference that was left behind is an error, never a loss.
    Contact.objects.of(organization_id).filter(pk=gone.pk)._raw_delete(using=connection.alias)
    _take_over(kept, gone)
    MergedContact.objects.create(
        id=gone.pk,
        organization_id=organization_id,
        contact=kept,
        external_id=gone.external_id if gone.external_id != kept.external_id else None,
        created_at=now,
    )
    kept_id, gone_id = (ids.encode(ids.CONTACT, contact.pk) for contact in (kept, gone))
    events.record(
        organization_id=organization_id,
        type="contact.merged",
        subject=kept_id,
        actor=actor,
        now=now,
        data={"from": gone_id, "to": kept_id},
    )


def _move_rows(kept: Contact, gone: Contact) -> None:
    """Point whatever refers to one contact to the other; each table's rows in the order in which all lock them."""
    for model, column in _references():
        rows = model._base_manager.filter(**{column: gone.pk})
        keys = list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
        model._base_manager.filter(pk__in=keys).update(**{column: kept.pk})


def _references() -> Iterator[tuple[type[models.Model], str]]:
    """Each model with a foreign key to a contact, and the key's name; those of rooms above among them."""
    for relation in Contact._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            yield relation.related_model, relation.field.name


def _take_over(kept: Contact, gone: Contact) -> None:
    """What the one that stays did not know of itself."""
    kept.name = kept.name or gone.name
    kept.external_id = kept.external_id or gone.external_id
    kept.attributes = {**gone.attributes, **kept.attributes}
    kept.created_at = min(kept.created_at, gone.created_at)
    kept.save()
