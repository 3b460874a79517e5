"""Two contacts that turn out to be one person: one is left, with all that referred to either."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.db import IntegrityError, connection, models, transaction

from audience import consent, merging, phones, selectors, services
from audience.models import ConsentEvent, Contact, ContactAddress, GroupMember, MergedContact
from events import services as events
from events.models import Event
from permissions import ids, isolation
from permissions.models import Organization
from tests import factories
from tests.factories import NOON
from tests.together import together

PHONE, OTHER, LID = "5511999990001", "5511988880002", "111222333444555@lid"


@dataclass
class Pair:
    """Two contacts of one organization: the older one, and one that is made a day later."""

    organization: Organization
    first: Contact
    second: Contact

    def merge(self) -> Contact:
        return merging.merge(
            organization=self.organization, first=self.first, second=self.second, actor=events.SYSTEM, now=NOON
        )

    def only(self) -> Contact:
        return Contact.objects.of(self.organization).get()


@pytest.fixture
def pair(db: Any) -> Pair:
    organization = factories.OrganizationFactory.create()
    make = factories.ContactFactory.create
    first = make(organization=organization, identity=PHONE, name="Ana", created_at=NOON - timedelta(days=2))
    second = make(organization=organization, identity=OTHER, name="Ana B.", created_at=NOON - timedelta(days=1))
    return Pair(organization, first, second)


def of_ids(organization: Organization, *jids: str) -> Contact:
    known = [phones.identity_of_whatsapp_id(jid) for jid in jids]
    return services.contact_for_whatsapp_ids(organization=organization, whatsapp_ids=known, now=NOON)


def addresses(contact: Contact) -> set[str]:
    return set(contact.addresses.values_list("value", flat=True))


def ledger(contact: Contact) -> list[str]:
    rows = ConsentEvent.objects.of(contact.organization_id).filter(contact=contact)
    return list(rows.order_by("id").values_list("kind", flat=True))


class TestWhoStays:
    def test_the_older_one_whichever_is_named_first(self, pair: Pair) -> None:
        pair.first, pair.second = pair.second, pair.first

        kept = pair.merge()

        assert (kept, kept.identity, kept.name) == (pair.second, PHONE, "Ana")
        assert pair.only() == kept

    def test_the_one_with_a_phone_though_it_is_younger(self, pair: Pair) -> None:
        Contact.unscoped.filter(pk=pair.first.pk).update(identity=None)

        kept = pair.merge()

        assert (kept, kept.identity, kept.name) == (pair.second, OTHER, "Ana B.")
        assert kept.created_at == NOON - timedelta(days=2)

    def test_what_it_lacked_it_takes_and_what_it_had_is_right(self, pair: Pair) -> None:
        Contact.unscoped.filter(pk=pair.first.pk).update(name="", attributes={"cidade": "Rio"})
        Contact.unscoped.filter(pk=pair.second.pk).update(external_id="u2", attributes={"cidade": "Bahia", "plano": 1})

        pair.merge()

        kept = pair.only()
        assert (kept.name, kept.external_id) == ("Ana B.", "u2")
        assert kept.attributes == {"cidade": "Rio", "plano": 1}


class TestWhatMoves:
    def test_addresses_lines_and_history(self, pair: Pair) -> None:
        group = factories.GroupFactory.create(organization=pair.organization)
        for contact in (pair.first, pair.second):
            services.add_member(group=group, given_phone=f"+{contact.identity}", now=NOON)
        consent.hold(contact=pair.second, reason="", actor=events.SYSTEM, now=NOON)
        consent.release(contact=pair.second, reason="", actor=events.SYSTEM, now=NOON)

        kept = pair.merge()

        assert addresses(kept) == {PHONE, "551199990001", OTHER, "551188880002"}
        assert set(GroupMember.objects.of(pair.organization).values_list("contact", flat=True)) == {kept.pk}
        assert ledger(kept) == ["held", "released"]
        lines = selectors.groups.lines(group).values_list("exclusion", flat=True)
        assert sorted(lines) == ["", "duplicate"]

    def test_every_key_to_a_contact_moves(self, pair: Pair) -> None:
        """Also of tables that are not written yet: whatever refers to a contact is found by Django itself."""
        found = {
            (model, field.name)
            for model in apps.get_models()
            for field in model._meta.local_fields
            if isinstance(field, models.ForeignKey) and field.related_model is Contact
        }
        assert set(merging._references()) == found
        assert {model.__name__ for model, _name in found} >= {"Message", "Recipient", "GroupMember", "ConsentEvent"}

    def test_a_row_left_behind_stops_the_merge(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        consent.hold(contact=pair.second, reason="", actor=events.SYSTEM, now=NOON)
        monkeypatch.setattr(merging, "_references", lambda: iter(()))

        pair.merge()

        with pytest.raises(IntegrityError, match="consent_events"):
            connection.check_constraints()
        transaction.set_rollback(True)

    def test_rooms_above_take_part_in_the_order_of_the_settings(self, pair: Pair, settings: LazySettings) -> None:
        settings.CONTACT_REFERENCES = [f"{__name__}.Listening"]
        Listening.heard = []

        kept = pair.merge()

        keys = tuple(sorted([pair.first.pk, pair.second.pk]))
        assert Listening.heard == [("lock", keys), ("join", (kept.pk, pair.second.pk))]


class Listening:
    """A room that writes down what it is told."""

    heard: list[Any] = []

    def lock(self, *, organization_id: Any, contact_ids: Any) -> None:
        self.heard.append(("lock", tuple(contact_ids)))

    def join(self, *, organization_id: Any, kept: Any, gone: Any) -> None:
        self.heard.append(("join", (kept, gone)))


class TestConsent:
    @pytest.mark.parametrize("blocked", ["first", "second"])
    def test_blocked_wins(self, pair: Pair, blocked: str) -> None:
        consent.block(contact=getattr(pair, blocked), reason="SAIR", actor=events.SYSTEM, now=NOON, by_contact=True)

        pair.merge()

        kept = pair.only()
        assert (kept.is_blocked, kept.blocked_at, kept.blocked_reason) == (True, NOON, "SAIR")
        assert ledger(kept) == ["blocked", "blocked"]

    def test_a_block_wins_over_a_later_unblock_of_the_other(self, pair: Pair) -> None:
        person = factories.MemberFactory.create(organization=pair.organization)
        consent.block(contact=pair.second, reason="", actor=events.SYSTEM, now=NOON - timedelta(hours=3))
        consent.block(contact=pair.first, reason="", actor=events.SYSTEM, now=NOON - timedelta(hours=2))
        consent.unblock(contact=pair.first, reason="", actor=events.user(person), now=NOON - timedelta(hours=1))

        pair.merge()

        assert pair.only().is_blocked
        assert ConsentEvent.objects.of(pair.organization).order_by("-created_at")[0].kind == "blocked"

    @pytest.mark.parametrize("held", ["first", "second"])
    def test_a_hold_stays(self, pair: Pair, held: str) -> None:
        consent.hold(contact=getattr(pair, held), reason="", actor=events.SYSTEM, now=NOON)

        pair.merge()

        assert pair.only().is_on_hold
        assert ledger(pair.only())[-1] == "held"

    def test_a_block_of_the_contact_that_was_merged_away_is_the_persons(self, pair: Pair) -> None:
        pair.merge()

        assert consent.block(contact=pair.second, reason="", actor=events.SYSTEM, now=NOON)

        assert pair.only().is_blocked
        assert pair.second.is_blocked


class TestAfterwards:
    def test_it_is_in_the_trail_once(self, pair: Pair) -> None:
        kept = pair.merge()
        again = pair.merge()

        assert again == kept
        event = Event.objects.get(type="contact.merged")
        kept_id, gone_id = (ids.encode(ids.CONTACT, contact.pk) for contact in (pair.first, pair.second))
        assert (event.subject, event.data) == (kept_id, {"from": gone_id, "to": kept_id})
        assert selectors.subjects_of(kept) == [kept_id, gone_id]

    def test_the_old_id_leads_to_the_person_through_two_merges(self, pair: Pair) -> None:
        kept = pair.merge()
        oldest = factories.ContactFactory.create(organization=pair.organization, created_at=NOON - timedelta(days=9))
        merging.merge(organization=pair.organization, first=kept, second=oldest, actor=events.SYSTEM, now=NOON)

        for gone in (pair.first, pair.second):
            assert selectors.contact(organization_id=pair.organization.pk, contact_id=gone.pk) == oldest
        assert Contact.objects.of(pair.organization).get() == oldest

    def test_the_external_id_that_could_not_stay_is_kept(self, pair: Pair) -> None:
        for contact, external_id in ((pair.first, "u1"), (pair.second, "u2")):
            Contact.unscoped.filter(pk=contact.pk).update(external_id=external_id)

        pair.merge()

        assert pair.only().external_id == "u1"
        assert MergedContact.objects.of(pair.organization).get().external_id == "u2"

    def test_one_with_itself_is_itself(self, pair: Pair) -> None:
        pair.second = pair.first

        assert pair.merge() == pair.first
        assert not Event.objects.filter(type="contact.merged").exists()

    def test_it_needs_no_more_than_its_tenants_scope(self, pair: Pair) -> None:
        group = factories.GroupFactory.create(organization=pair.organization)
        with isolation.of(pair.organization.pk):
            services.add_member(group=group, given_phone=f"+{OTHER}", now=NOON)
            kept = pair.merge()
            assert of_ids(pair.organization, f"{OTHER}@c.us", LID) == kept

        assert GroupMember.objects.of(pair.organization).get().contact == kept

    def test_a_stranger_is_nobody(self, pair: Pair) -> None:
        pair.second = factories.ContactFactory.create()

        with pytest.raises(Contact.DoesNotExist):
            pair.merge()
        assert Contact.unscoped.count() == 3


class TestLearning:
    """What WhatsApp says of a chat: ids that are one person's."""

    @pytest.fixture
    def organization(self, db: Any) -> Organization:
        return factories.OrganizationFactory.create()

    def test_a_lid_is_no_phone(self, organization: Organization) -> None:
        contact = of_ids(organization, LID)

        assert contact.identity is None
        assert list(contact.addresses.values_list("kind", "value")) == [("lid", "111222333444555")]
        assert of_ids(organization, LID) == contact

    def test_a_lid_whose_number_becomes_known_gets_it(self, organization: Organization) -> None:
        contact = of_ids(organization, LID)

        assert of_ids(organization, LID, f"{PHONE}@c.us") == contact

        contact.refresh_from_db()
        assert contact.identity == PHONE
        assert services.add_contact(organization=organization, phone="11 99999-0001", now=NOON) == contact

    def test_an_opt_out_under_the_lid_is_the_numbers_too(self, organization: Organization) -> None:
        known = services.add_contact(organization=organization, phone=PHONE, now=NOON, name="Ana")
        lid = of_ids(organization, LID)
        consent.block(contact=lid, reason="SAIR", actor=events.SYSTEM, now=NOON, by_contact=True)

        assert of_ids(organization, "551199990001@c.us", LID) == known

        known.refresh_from_db()
        assert (known.is_blocked, known.identity, known.name) == (True, PHONE, "Ana")
        assert addresses(known) == {PHONE, "551199990001", "111222333444555"}
        assert Contact.objects.of(organization).count() == 1

    def test_digits_that_no_plan_knows_are_taken_from_whatsapp(self, organization: Organization) -> None:
        assert of_ids(organization, "551199990001@c.us").identity == PHONE
        assert of_ids(organization, "15550001111@s.whatsapp.net").identity == "15550001111"

    @pytest.mark.parametrize(
        "jid",
        [
            "120363012345678901@g.us",
            "5511999990001-1500000000@g.us",
            "120363111111111111@newsletter",
            "1712345678@broadcast",
            "status@broadcast",
            "0@c.us",
            "",
        ],
    )
    def test_what_is_nobody_makes_nobody(self, organization: Organization, jid: str) -> None:
        with pytest.raises(ValueError, match="no person's"):
            of_ids(organization, jid)
        with pytest.raises(ValueError, match="no person's"):
            of_ids(organization, f"{PHONE}@c.us", jid)
        assert not Contact.objects.of(organization).exists()

    def test_contacts_that_came_apart_meet_at_the_next_look(self, organization: Organization) -> None:
        short = factories.ContactFactory.create(organization=organization, identity=None, name="Ana")
        long = factories.ContactFactory.create(organization=organization, identity=PHONE, name="")
        ContactAddress.objects.create(organization=organization, contact=short, kind="phone", value="551199990001")

        found = services.add_contact(organization=organization, phone=PHONE, now=NOON)

        assert found == long
        assert Contact.objects.of(organization).get().name == "Ana"

    def test_a_known_contact_costs_few_queries(
        self, organization: Organization, django_assert_max_num_queries: Callable[[int], Any]
    ) -> None:
        of_ids(organization, f"{PHONE}@c.us", LID)

        with django_assert_max_num_queries(5):
            of_ids(organization, f"{PHONE}@c.us", LID)


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture
    def organization(self) -> Organization:
        return factories.OrganizationFactory.create()

    def test_crossing_merges_make_one(self, organization: Organization) -> None:
        for _round in range(10):
            first, second = (factories.ContactFactory.create(organization=organization) for _ in range(2))

            def merge(one: Contact, other: Contact) -> Contact:
                return merging.merge(organization=organization, first=one, second=other, actor=events.SYSTEM, now=NOON)

            kept = together(*[lambda a=a, b=b: merge(a, b) for a, b in ((first, second), (second, first)) * 2])

            assert len(set(kept)) == 1
            assert Contact.objects.of(organization).filter(pk__in=[first.pk, second.pk]).get() == kept[0]

    def test_a_ring_of_merges_makes_one(self, organization: Organization) -> None:
        people = [factories.ContactFactory.create(organization=organization) for _ in range(4)]

        def merge(place: int) -> Contact:
            return merging.merge(
                organization=organization,
                first=people[place],
                second=people[(place + 1) % len(people)],
                actor=events.SYSTEM,
                now=NOON,
            )

        together(*[lambda place=place: merge(place) for place in range(len(people))])

        left = Contact.objects.of(organization).get()
        assert {selectors.contact(organization_id=organization.pk, contact_id=each.pk) for each in people} == {left}

    def test_with_and_without_the_ninth_digit_typed_and_from_whatsapp(self, organization: Organization) -> None:
        for number in range(25):
            line = f"{99990000 + number:08}"
            lid = f"9000{number:06}@lid"
            writers = [
                partial(services.add_contact, organization=organization, phone=f"+55 11 9{line}", now=NOON),
                partial(services.add_contact, organization=organization, phone=f"5511{line}", now=NOON),
                partial(of_ids, organization, f"5511{line}@c.us"),
                partial(of_ids, organization, f"55119{line}@c.us", lid),
                partial(of_ids, organization, lid),
            ]

            together(*writers)

            # The LID alone may have been first, and met the number only when both were named: then once more.
            of_ids(organization, f"5511{line}@c.us", lid)
            contact = Contact.objects.of(organization).get(identity=f"55119{line}")
            assert addresses(contact) == {f"55119{line}", f"5511{line}", f"9000{number:06}"}
        assert Contact.objects.of(organization).count() == 25

    def test_one_lid_at_once_is_one_contact(self, organization: Organization) -> None:
        for number in range(10):
            found = together(*[lambda number=number: of_ids(organization, f"7000{number:06}@lid")] * 6)
            assert len(set(found)) == 1
        assert Contact.objects.of(organization).count() == 10

    def test_a_contact_in_use_is_not_merged_away(self, organization: Organization) -> None:
        """A row is written for a contact in the transaction that found it: the merge waits, and moves the row."""
        found, merged = threading.Event(), threading.Event()
        kept = factories.ContactFactory.create(organization=organization, created_at=NOON - timedelta(days=1))

        def write() -> None:
            with transaction.atomic():
                contact = of_ids(organization, f"{PHONE}@c.us")
                found.set()
                assert not merged.wait(timeout=0.3)
                consent.hold(contact=contact, reason="", actor=events.SYSTEM, now=NOON)

        def merge() -> None:
            found.wait(timeout=10)
            contact = of_ids(organization, f"{PHONE}@c.us")
            merging.merge(organization=organization, first=kept, second=contact, actor=events.SYSTEM, now=NOON)
            merged.set()

        with transaction.atomic():
            of_ids(organization, f"{PHONE}@c.us")
        together(write, merge)

        assert Contact.objects.of(organization).get() == kept
        assert ledger(kept) == ["held", "held"]
