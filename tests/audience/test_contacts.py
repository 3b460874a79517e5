"""One contact per person, however his number is written; lines of a group kept as they came."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from audience import phones, services
from audience.models import Contact, ContactAddress, Group, GroupMember
from audience.phones import PhoneRejected
from permissions.models import Organization
from tests import factories
from tests.factories import NOON
from tests.together import together


@pytest.fixture
def organization(db: Any) -> Organization:
    return factories.OrganizationFactory.create()


@pytest.fixture
def group(organization: Organization) -> Group:
    return factories.GroupFactory.create(organization=organization)


def spellings(organization: Organization) -> set[str]:
    return set(ContactAddress.objects.of(organization).values_list("value", flat=True))


@pytest.mark.parametrize(
    ("first", "second", "identity"),
    [
        ("+55 11 99999-0001", "551199990001", "5511999990001"),
        ("551199990001", "(11) 99999-0001", "5511999990001"),
        ("+52 1 55 1234 5678", "+525512345678", "525512345678"),
        ("+5491123456789", "+54 11 2345-6789", "5491123456789"),
        ("1133334444", "551133334444", "551133334444"),
    ],
)
def test_spellings_of_a_number_are_one_contact(
    organization: Organization, first: str, second: str, identity: str
) -> None:
    contact = services.add_contact(organization=organization, phone=first, now=NOON, name="Ana")

    assert services.add_contact(organization=organization, phone=second, now=NOON) == contact
    assert Contact.objects.of(organization).get().identity == identity
    assert spellings(organization) == set(phones.variants_of(identity))


@pytest.mark.django_db
def test_the_region_of_the_organization_reads_numbers_without_a_country() -> None:
    mexican = factories.OrganizationFactory.create(region="MX")

    contact = services.add_contact(organization=mexican, phone="55 1234 5678", now=NOON)

    assert contact.identity == "525512345678"


def test_what_is_no_phone_makes_no_contact(organization: Organization) -> None:
    with pytest.raises(PhoneRejected):
        services.add_contact(organization=organization, phone="5,51199999E+12", now=NOON)

    assert not Contact.objects.of(organization).exists()


def test_what_is_missing_is_learnt_and_what_is_known_stays(organization: Organization) -> None:
    phone = "+5511999990001"
    services.add_contact(organization=organization, phone=phone, now=NOON, attributes={"curso": "Go", "cidade": "Rio"})
    services.add_contact(organization=organization, phone=phone, now=NOON, name="Ana", external_id="u1")

    contact = services.add_contact(
        organization=organization, phone=phone, now=NOON, name="Outra", external_id="u2", attributes={"curso": "Python"}
    )

    assert (contact.name, contact.external_id) == ("Ana", "u1")
    assert contact.attributes == {"curso": "Python", "cidade": "Rio"}


def test_an_external_id_belongs_to_one_contact(organization: Organization) -> None:
    services.add_contact(organization=organization, phone="+5511999990001", now=NOON, external_id="u1")

    with pytest.raises(services.ExternalIdTaken):
        services.add_contact(organization=organization, phone="+5511999990002", now=NOON, external_id="u1")

    assert Contact.objects.of(organization).count() == 1


def test_organizations_share_nobody(organization: Organization) -> None:
    other = factories.OrganizationFactory.create()

    ours = services.add_contact(organization=organization, phone="+5511999990001", now=NOON)
    theirs = services.add_contact(organization=other, phone="+5511999990001", now=NOON)

    assert ours != theirs


def test_a_line_keeps_its_phone_as_it_came(group: Group) -> None:
    member = services.add_member(group=group, given_phone="(11) 9 9999-0001 ", now=NOON, name="Ana")

    assert member.given_phone == "(11) 9 9999-0001 "
    assert member.contact is not None
    assert member.contact.identity == "5511999990001"


def test_a_line_without_a_phone_has_no_contact(group: Group) -> None:
    member = services.add_member(group=group, given_phone="ligar para a Ana", now=NOON)

    assert (member.given_phone, member.contact) == ("ligar para a Ana", None)


def test_the_same_line_again_is_the_same_line_and_active(group: Group) -> None:
    first = services.add_member(group=group, given_phone="+5511999990001", now=NOON, name="Ana")
    services.deactivate_member(member=first)

    again = services.add_member(group=group, given_phone="+5511999990001", now=NOON)

    assert again == first
    assert (again.status, again.name) == (GroupMember.Status.ACTIVE, "Ana")


def test_a_group_needs_an_owner_of_its_own_organization(organization: Organization) -> None:
    strangers = factories.TeamFactory.create()
    wanted: dict[str, Any] = {"organization": organization, "external_id": "g", "name": "G", "now": NOON}

    with pytest.raises(services.GroupNeedsAnOwner):
        services.create_group(**wanted)
    with pytest.raises(services.GroupNeedsAnOwner):
        services.create_group(**wanted, team=strangers)


def test_a_groups_external_id_is_used_once(organization: Organization) -> None:
    team = factories.TeamFactory.create(organization=organization)
    services.create_group(organization=organization, external_id="g", name="G", now=NOON, team=team)

    with pytest.raises(services.GroupExists):
        services.create_group(organization=organization, external_id="g", name="H", now=NOON, team=team)


@pytest.mark.django_db(transaction=True)
def test_writers_at_once_with_and_without_the_ninth_digit_make_one_contact() -> None:
    organization = factories.OrganizationFactory.create()

    def write(phone: str) -> Any:
        return services.add_contact(organization=organization, phone=phone, now=NOON).pk

    found = set(together(*[partial(write, phone) for phone in ("+5511999990001", "551199990001") * 4]))

    assert len(found) == 1
    assert Contact.objects.of(organization).count() == 1
    assert spellings(organization) == {"5511999990001", "551199990001"}
