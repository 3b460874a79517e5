"""What a person may be sent: blocks, holds and their end. In force at once, since each gate reads the contact."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from audience import selectors
from audience.models import ConsentEvent, Contact
from events import services as events
from events.models import Event
from events.services import Actor
from permissions import ids

Kind = ConsentEvent.Kind


class OnlyAPersonUnblocks(Exception):
    """A block is lifted by a person, never by the machine or by an import."""


def block(*, contact: Contact, reason: str, actor: Actor, now: datetime, by_contact: bool = False) -> bool:
    """Stop automatic sends to a person, those already queued included; False where he was blocked before.

    ``by_contact``: the person himself asked for it; audited as ``contact.opted_out`` too.
    """
    with transaction.atomic():
        person = _locked(contact)
        if person.is_blocked:
            return False
        person.is_blocked, person.blocked_at, person.blocked_reason = True, now, reason
        person.save(update_fields=["is_blocked", "blocked_at", "blocked_reason", "updated_at"])
        _write_down(person, Kind.BLOCKED, "contact.blocked", reason, actor, now)
        if by_contact:
            _record(person, "contact.opted_out", actor, now)
    _refresh(contact, person)
    return True


def unblock(*, contact: Contact, reason: str, actor: Actor, now: datetime) -> bool:
    """Let automatic sends go on; False where he was not blocked. Raises OnlyAPersonUnblocks."""
    if actor.type == Event.Actor.SYSTEM:
        raise OnlyAPersonUnblocks(OnlyAPersonUnblocks.__doc__)
    with transaction.atomic():
        person = _locked(contact)
        if not person.is_blocked:
            return False
        person.is_blocked, person.blocked_at, person.blocked_reason = False, None, ""
        person.save(update_fields=["is_blocked", "blocked_at", "blocked_reason", "updated_at"])
        _write_down(person, Kind.UNBLOCKED, "contact.unblocked", reason, actor, now)
    _refresh(contact, person)
    return True


def hold(*, contact: Contact, reason: str, actor: Actor, now: datetime) -> bool:
    """Pause automatic sends to a person until somebody decides; False where they were paused."""
    return _set_hold(contact, True, Kind.HELD, "contact.held", reason, actor, now)


def release(*, contact: Contact, reason: str, actor: Actor, now: datetime) -> bool:
    """End a hold; False where there was none. A block stays."""
    return _set_hold(contact, False, Kind.RELEASED, "contact.released", reason, actor, now)


def carry_over(*, kept: Contact, gone: Contact, actor: Actor, now: datetime) -> None:
    """Of two contacts that are one person, both locked: a block or hold of either is in force (blocked wins).

    Sets the fields of ``kept``, to be saved by the caller, and writes down what is new to it.
    """
    if kept.is_blocked is not gone.is_blocked:
        blocked = kept if kept.is_blocked else gone
        if blocked is gone:
            _record(kept, "contact.blocked", actor, now)
        # Last in the ledger, whatever the other's history says: the sum of both is a block.
        _enter(kept, Kind.BLOCKED, blocked.blocked_reason, actor, now)
        kept.is_blocked, kept.blocked_at, kept.blocked_reason = True, blocked.blocked_at, blocked.blocked_reason
    if kept.is_on_hold is not gone.is_on_hold:
        if gone.is_on_hold:
            _record(kept, "contact.held", actor, now)
        _enter(kept, Kind.HELD, "", actor, now)
        kept.is_on_hold = True


def _set_hold(
    contact: Contact, wanted: bool, kind: ConsentEvent.Kind, event: str, reason: str, actor: Actor, now: datetime
) -> bool:
    with transaction.atomic():
        person = _locked(contact)
        if person.is_on_hold is wanted:
            return False
        person.is_on_hold = wanted
        person.save(update_fields=["is_on_hold", "updated_at"])
        _write_down(person, kind, event, reason, actor, now)
    _refresh(contact, person)
    return True


def _locked(contact: Contact) -> Contact:
    """The row as it is now; of two who decide at once, the second sees what the first did.

    A contact that was merged meanwhile is the person it became. Freezes refer to contacts by the hundred
    thousand: a lock that lets them do so holds none of them up.
    """
    rows = Contact.objects.of(contact.organization_id).select_for_update(no_key=True)
    found = rows.filter(pk=contact.pk).first()
    if found is not None:
        return found
    became = selectors.contact(organization_id=contact.organization_id, contact_id=contact.pk)
    return rows.get(pk=contact.pk if became is None else became.pk)


def _refresh(contact: Contact, person: Contact) -> None:
    """The caller's object says what is now in force."""
    for field in ("is_blocked", "blocked_at", "blocked_reason", "is_on_hold", "updated_at"):
        setattr(contact, field, getattr(person, field))


def _write_down(person: Contact, kind: ConsentEvent.Kind, event: str, reason: str, actor: Actor, now: datetime) -> None:
    _enter(person, kind, reason, actor, now)
    _record(person, event, actor, now)


def _enter(person: Contact, kind: ConsentEvent.Kind, reason: str, actor: Actor, now: datetime) -> None:
    ConsentEvent.objects.create(
        organization_id=person.organization_id,
        contact=person,
        kind=kind,
        reason=reason,
        actor=actor.id or actor.type,
        created_at=now,
    )


def _record(person: Contact, event: str, actor: Actor, now: datetime) -> None:
    # The reason stays in the ledger: a person wrote it, and it may quote what the contact said.
    events.record(
        organization_id=person.organization_id,
        type=event,
        subject=ids.encode(ids.CONTACT, person.pk),
        actor=actor,
        now=now,
    )
