"""Who of a group may be written to, and why the others may not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audience import consent, selectors, services
from audience.models import Contact, Group, GroupMember
from audience.selectors import groups
from broadcasts.models import Recipient
from events import services as events
from permissions import ids
from tests import factories
from tests.factories import NOON


@pytest.fixture
def group(db: Any) -> Group:
    return factories.GroupFactory.create()


def add(group: Group, *phones: str, **fields: Any) -> list[GroupMember]:
    return [services.add_member(group=group, given_phone=phone, now=NOON, **fields) for phone in phones]


def lines(group: Group) -> list[tuple[str, str]]:
    return [(line["phone"], line["exclusion"]) for line in groups.lines(group).order_by("place")]


def test_lines_keep_the_order_of_the_group(group: Group) -> None:
    add(group, "+5511999990003", "+5511999990001", "+5511999990002")

    found = list(groups.lines(group).order_by("place"))

    assert [line["place"] for line in found] == [1, 2, 3]
    assert [line["phone"] for line in found] == ["5511999990003", "5511999990001", "5511999990002"]


def test_each_reason(group: Group) -> None:
    add(group, "+5511999990001", "nada", "551199990001", "+5511999990002", "+5511999990003")
    people = Contact.objects.of(group.organization)
    consent.block(contact=people.get(identity="5511999990002"), reason="", actor=events.SYSTEM, now=NOON)
    consent.hold(contact=people.get(identity="5511999990003"), reason="", actor=events.SYSTEM, now=NOON)

    assert lines(group) == [
        ("5511999990001", ""),
        ("nada", "invalid_phone"),
        ("551199990001", "duplicate"),
        ("5511999990002", "opted_out"),
        ("5511999990003", "contact_on_hold"),
    ]


def test_the_earliest_line_stands_for_the_person(group: Group) -> None:
    late = factories.GroupMemberFactory.create(group=group, given_phone="+5511999990001", created_at=NOON)
    assert late.contact is not None
    early = factories.GroupMemberFactory.create(
        group=group, given_phone="551199990001", contact=late.contact, created_at=NOON - timedelta(days=1)
    )

    found = {line["phone"]: line for line in groups.lines(group)}

    assert found[late.contact.identity]["exclusion"] == ""
    assert found["+5511999990001"]["exclusion"] == "duplicate"
    assert found["+5511999990001"]["duplicate_of"] == early.given_phone


def test_a_second_line_of_a_blocked_person_is_a_duplicate(group: Group) -> None:
    first, _second = add(group, "+5511999990001", "551199990001")
    assert first.contact is not None
    consent.block(contact=first.contact, reason="", actor=events.SYSTEM, now=NOON)

    assert [reason for _phone, reason in lines(group)] == ["opted_out", "duplicate"]


def test_a_blocked_person_on_hold_is_blocked(group: Group) -> None:
    (line,) = add(group, "+5511999990001")
    assert line.contact is not None
    consent.hold(contact=line.contact, reason="", actor=events.SYSTEM, now=NOON)
    consent.block(contact=line.contact, reason="", actor=events.SYSTEM, now=NOON)

    assert lines(group) == [("5511999990001", "opted_out")]


def test_inactive_lines_are_no_part(group: Group) -> None:
    first, _second = add(group, "+5511999990001", "551199990001")
    services.deactivate_member(member=first)

    assert lines(group) == [("5511999990001", "")]


def test_somebody_known_by_a_lid_alone_has_no_phone_to_write_to(group: Group) -> None:
    unknown = factories.ContactFactory.create(organization=group.organization, identity=None)
    factories.GroupMemberFactory.create(group=group, contact=unknown, given_phone="?")

    assert lines(group) == [("?", "invalid_phone")]


def test_names_and_attributes_come_along(group: Group) -> None:
    add(group, "+5511999990001", name="Ana", attributes={"curso": "Go"})
    services.add_member(group=group, given_phone="nada", now=NOON, name="Bia")

    found = [(line["person_name"], line["attributes"]) for line in groups.lines(group).order_by("place")]

    assert found == [("Ana", {"curso": "Go"}), ("Bia", {})]


def test_a_group_is_found_by_its_id_or_the_callers_own(group: Group) -> None:
    organization = group.organization

    for reference in (ids.encode(ids.GROUP, group.pk), group.external_id):
        assert groups.find(organization_id=organization.pk, reference=reference) == group
    assert groups.find(organization_id=organization.pk, reference="grp_nope") is None


def test_another_organizations_group_is_not_found(group: Group) -> None:
    stranger = factories.OrganizationFactory.create()

    for reference in (ids.encode(ids.GROUP, group.pk), group.external_id):
        assert groups.find(organization_id=stranger.pk, reference=reference) is None


@pytest.mark.parametrize(("name", "known"), [("curso", True), ("cidade", False), ("nada", False)])
def test_an_attribute_is_known_where_anybody_of_the_organization_has_it(group: Group, name: str, known: bool) -> None:
    factories.ContactFactory.create(organization=group.organization, attributes={"curso": None})
    factories.ContactFactory.create(attributes={"cidade": "Rio"})

    assert groups.has_attribute(organization_id=group.organization_id, name=name) is known


def test_the_number_of_lines_costs_no_query(group: Group) -> None:
    add(group, *(f"+55119999900{number:02}" for number in range(45)))

    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(list(groups.lines(group))) == 45

    assert len(queries) == 1


def test_every_reason_has_a_word_in_the_broadcast() -> None:
    assert {reason.value for reason in selectors.Exclusion} <= set(Recipient.Exclusion.values)
