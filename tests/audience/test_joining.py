"""Many lines at once are what the same lines are one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from audience import consent, joining, merging, services
from audience.joining import Added, Line
from audience.models import Contact, ContactAddress, Group, GroupMember
from audience.services import ExternalIdTaken
from events import services as events
from tests import factories
from tests.factories import NOON
from tests.together import together

HARD = [
    Line(given_phone="+55 11 99999-0001", name="Ana", attributes={"cidade": "Rio"}),
    Line(given_phone="551199990001", name="Ana de novo", attributes={"cidade": "Bahia", "plano": "ouro"}),
    Line(given_phone="5,51199999E+12", name="Perdida"),
    Line(given_phone="(11) 9 8888-0002"),
    Line(given_phone="(11) 9 8888-0002", name="Bia", external_id="u2"),
    Line(given_phone="", name="Ninguém"),
    Line(given_phone="5547911223344@lid"),
    Line(given_phone="1133334444", name="Loja", external_id="u3", attributes={"ramal": 20}),
    Line(given_phone="+54 11 15 2345-6789", name="Che"),
    Line(given_phone="+52 1 55 1234 5678"),
    Line(given_phone="190"),
    Line(given_phone="11 99999-0001 / 11 98888-0002"),
    Line(given_phone="5511977770007", name="João 👍", attributes={"nota": None, "nome": "outro"}),
]


@pytest.fixture
def group(db: Any) -> Group:
    return factories.GroupFactory.create()


def people(group: Group) -> list[dict[str, Any]]:
    """The group in its order, as far as it can be compared with another organization's."""
    rows = GroupMember.objects.of(group.organization).filter(group=group).select_related("contact")
    return [
        {
            "line": (row.given_phone, row.name, row.status),
            "person": row.contact
            and (row.contact.identity, row.contact.name, row.contact.external_id, row.contact.attributes),
            "spellings": row.contact and sorted(row.contact.addresses.values_list("value", flat=True)),
        }
        for row in rows.order_by("created_at", "id")
    ]


def add(group: Group, *lines: Line) -> Added:
    return joining.add_members(group=group, lines=lines, now=NOON)


def add_one_by_one(group: Group, *lines: Line) -> None:
    for line in lines:
        services.add_member(
            group=group,
            given_phone=line.given_phone,
            now=NOON,
            name=line.name,
            external_id=line.external_id,
            attributes=line.attributes,
        )


def test_all_at_once_is_one_by_one(group: Group) -> None:
    other = factories.GroupFactory.create()

    added = add(group, *HARD)
    add_one_by_one(other, *HARD)

    assert people(group) == people(other)
    assert (added.lines, added.new_contacts) == (12, 6)
    assert added.rejected == {2: "scientific", 5: "empty", 6: "lid", 10: "service", 11: "multiple"}


def test_again_changes_nothing(group: Group) -> None:
    add(group, *HARD)
    before = people(group)

    again = add(group, *HARD)

    assert people(group) == before
    assert (again.lines, again.new_contacts) == (12, 0)


def test_who_is_known_stays_who_he_is(group: Group) -> None:
    for phone in ("+5511999990001", "+551133334444"):
        contact = services.add_contact(organization=group.organization, phone=phone, now=NOON, name="Velha")
        consent.block(contact=contact, reason="", actor=events.SYSTEM, now=NOON)

    added = add(group, *HARD)

    assert added.new_contacts == 4
    known = Contact.objects.of(group.organization).filter(is_blocked=True).order_by("identity")
    assert [(contact.identity, contact.name) for contact in known] == [
        ("551133334444", "Velha"),
        ("5511999990001", "Velha"),
    ]
    assert known[1].attributes == {"cidade": "Bahia", "plano": "ouro"}


def test_a_line_that_was_taken_out_is_back(group: Group) -> None:
    add(group, Line(given_phone="+5511999990001", name="Ana"))
    services.deactivate_member(member=GroupMember.objects.of(group.organization).get())

    add(group, Line(given_phone="+5511999990001"))

    assert [person["line"] for person in people(group)] == [("+5511999990001", "Ana", "ACTIVE")]


def test_contacts_that_share_a_number_are_merged_on_the_way(group: Group) -> None:
    make = partial(factories.ContactFactory.create, organization=group.organization)
    long, short = make(identity="5511999990001", name=""), make(identity=None, name="Ana")
    ContactAddress.objects.create(
        organization=group.organization, contact=short, kind="phone", value="551199990001", created_at=NOON
    )

    add(group, *HARD)

    assert Contact.objects.of(group.organization).get(identity="5511999990001") == long
    assert not Contact.objects.of(group.organization).filter(pk=short.pk).exists()
    assert people(group)[0]["spellings"] == ["551199990001", "5511999990001"]


@pytest.mark.parametrize(
    "lines",
    [
        [Line(given_phone="+5511999990002", external_id="u1")],
        [Line(given_phone="+5511999990003", external_id="u1"), Line(given_phone="+5511999990004", external_id="u1")],
        [Line(given_phone="+5511999990003", external_id="u9"), Line(given_phone="+5511999990004", external_id="u9")],
    ],
)
def test_an_external_id_that_is_taken_is_named_and_nothing_is_added(group: Group, lines: list[Line]) -> None:
    services.add_contact(organization=group.organization, phone="+5511999990001", now=NOON, external_id="u1")

    with pytest.raises(ExternalIdTaken) as caught:
        add(group, *lines)

    assert caught.value.external_ids == [lines[0].external_id]
    assert people(group) == []
    assert Contact.objects.of(group.organization).count() == 1


def test_a_contacts_own_external_id_is_not_taken_by_another(group: Group) -> None:
    services.add_contact(organization=group.organization, phone="+5511999990001", now=NOON, external_id="u1")

    add(group, Line(given_phone="+5511999990001", external_id="u2"))
    add(group, Line(given_phone="+5511999990002", external_id="u2"))

    external_ids = Contact.objects.of(group.organization).order_by("identity").values_list("external_id", flat=True)
    assert list(external_ids) == ["u1", "u2"]


def test_the_queries_are_as_many_for_ten_as_for_three_hundred(
    group: Group, django_assert_num_queries: Callable[[int], Any]
) -> None:
    def lines(first: int, number: int) -> list[Line]:
        return [
            Line(given_phone=f"+55119{80000000 + place}", name=f"P{place}") for place in range(first, first + number)
        ]

    for first, number in ((0, 10), (10, 300)):
        with django_assert_num_queries(10):
            add(group, *lines(first, number))


def test_pages_follow_each_other(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_PAGE", 3)
    other = factories.GroupFactory.create()

    add(group, *HARD)
    add_one_by_one(other, *HARD)

    assert people(group) == people(other)


@pytest.mark.django_db(transaction=True)
def test_imports_single_writers_and_merges_at_once_make_each_person_once() -> None:
    group = factories.GroupFactory.create()
    oldest = factories.ContactFactory.create(organization=group.organization, created_at=NOON - timedelta(days=1))
    for turn in range(4):
        numbers = [f"{99000000 + turn * 1000 + place}" for place in range(60)]
        long = [Line(given_phone=f"+55 11 9{number}", name="Longo") for number in numbers]
        short = [Line(given_phone=f"5511{number}", name="Curto") for number in reversed(numbers)]

        def merge_first(phone: str = f"55119{numbers[0]}") -> None:
            contact = services.add_contact(organization=group.organization, phone=phone, now=NOON)
            merging.merge(organization=group.organization, first=oldest, second=contact, actor=events.SYSTEM, now=NOON)

        together(
            partial(add, group, *long),
            partial(add, group, *short),
            partial(add_one_by_one, group, *short[:20]),
            merge_first,
        )

        spelled = ContactAddress.objects.of(group.organization).filter(
            value__in=[f"5511{number}" for number in numbers]
        )
        assert spelled.count() == len(numbers)
    # One of each turn was merged into the one who was there before.
    assert Contact.objects.of(group.organization).count() == 1 + 4 * 59
    assert GroupMember.objects.of(group.organization).filter(contact=oldest).count() == 8
