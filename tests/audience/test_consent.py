"""Blocks and holds: in force at once, each written down once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from audience import consent, services
from audience.models import ConsentEvent, Contact
from events import services as events
from events.models import Event
from permissions import ids
from permissions.models import User
from tests import factories
from tests.factories import NOON


@pytest.fixture
def contact(db: Any) -> Contact:
    return factories.ContactFactory.create(identity="5511999990001")


@pytest.fixture
def admin(contact: Contact) -> User:
    return factories.MemberFactory.create(organization=contact.organization)


def ledger(contact: Contact) -> list[str]:
    return list(ConsentEvent.objects.of(contact.organization).order_by("id").values_list("kind", flat=True))


def trail(contact: Contact) -> list[str]:
    subject = ids.encode(ids.CONTACT, contact.pk)
    return list(Event.objects.filter(subject=subject).order_by("id").values_list("type", flat=True))


def test_a_block_is_written_down_once(contact: Contact, admin: User) -> None:
    blocked = [
        consent.block(contact=contact, reason="pediu na loja", actor=events.user(admin), now=NOON) for _ in range(2)
    ]

    assert blocked == [True, False]
    assert (contact.is_blocked, contact.blocked_at, contact.blocked_reason) == (True, NOON, "pediu na loja")
    assert ledger(contact) == ["blocked"]
    assert trail(contact) == ["contact.blocked"]


def test_what_a_person_asked_for_himself_is_an_opt_out_too(contact: Contact) -> None:
    consent.block(contact=contact, reason="SAIR", actor=events.SYSTEM, now=NOON, by_contact=True)

    assert trail(contact) == ["contact.blocked", "contact.opted_out"]


def test_the_trail_does_not_repeat_the_reason(contact: Contact, admin: User) -> None:
    consent.block(contact=contact, reason="disse: chega", actor=events.user(admin), now=NOON)

    assert Event.objects.get(type="contact.blocked").data == {}


def test_only_a_person_lifts_a_block(contact: Contact, admin: User) -> None:
    consent.block(contact=contact, reason="", actor=events.SYSTEM, now=NOON)

    with pytest.raises(consent.OnlyAPersonUnblocks):
        consent.unblock(contact=contact, reason="", actor=events.SYSTEM, now=NOON)
    assert consent.unblock(contact=contact, reason="voltou", actor=events.user(admin), now=NOON)

    assert (contact.is_blocked, contact.blocked_at) == (False, None)
    assert trail(contact) == ["contact.blocked", "contact.unblocked"]


def test_an_import_lifts_no_block(contact: Contact) -> None:
    consent.block(contact=contact, reason="", actor=events.SYSTEM, now=NOON)
    group = factories.GroupFactory.create(organization=contact.organization)

    for phone in ("+5511999990001", "551199990001"):
        services.add_member(group=group, given_phone=phone, now=NOON, name="Ana")

    contact.refresh_from_db()
    assert contact.is_blocked


@pytest.mark.parametrize(
    ("first", "second", "kinds", "held"),
    [
        (consent.hold, consent.hold, ["held"], True),
        (consent.hold, consent.release, ["held", "released"], False),
        (consent.release, consent.release, [], False),
    ],
)
def test_holds(
    contact: Contact, first: Callable[..., bool], second: Callable[..., bool], kinds: list[str], held: bool
) -> None:
    for move in (first, second):
        move(contact=contact, reason="", actor=events.SYSTEM, now=NOON)

    contact.refresh_from_db()
    assert contact.is_on_hold is held
    assert ledger(contact) == kinds
