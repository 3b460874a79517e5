"""The freeze: who is in, who is out and why, in one transaction."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audience import consent
from broadcasts import services
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast, Recipient
from broadcasts.refusals import Refused
from events import services as events
from events.models import Event
from messaging.models import Channel, Message, Stream
from permissions import ids
from permissions.models import TeamMember
from tests import factories
from tests.broadcasts.conftest import TEXTS, Shop

pytestmark = pytest.mark.django_db


def refused(shop: Shop, **fields: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        shop.compose(**fields)
    return caught.value


def test_everybody_of_the_group_is_in_once_and_in_order(shop: Shop) -> None:
    shop.add("+5511999990002", "+5511999990001", "+5511999990003")

    people = shop.recipients(shop.compose())

    assert [person.phone for person in people] == ["5511999990002", "5511999990001", "5511999990003"]
    assert [person.position for person in people] == [1, 2, 3]
    assert {person.state for person in people} == {"pending"}
    assert len({person.message_id for person in people} | {person.pk for person in people}) == 6


def test_45_lines_with_an_invalid_a_duplicate_and_an_opted_out(shop: Shop) -> None:
    shop.add_people(42)
    shop.add("551190000001", "liga pra mim", "+5511988887777")
    blocked = shop.contact("5511988887777")
    consent.block(contact=blocked, reason="", actor=events.SYSTEM, now=timezone.now())

    people = shop.recipients(shop.compose())

    assert Counter(person.code for person in people) == {
        "": 42,
        "invalid_phone": 1,
        "duplicate": 1,
        "opted_out": 1,
    }
    (double,) = [person for person in people if person.code == "duplicate"]
    assert (double.phone, double.duplicate_of) == ("551190000001", "+5511990000001")
    assert {person.channel_id for person in people if person.code == ""} == {shop.channel.pk}
    assert {person.channel_id for person in people if person.code} == {None}


def test_the_freeze_costs_the_same_for_any_number_of_people(shop: Shop) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            shop.compose()
        return len(captured)

    shop.add("+5511999990001")
    alone = queries()
    shop.add_people(30)

    assert queries() == alone


def test_who_joins_later_is_no_part(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    shop.add("+5511999990002")

    assert len(shop.recipients(broadcast)) == 1


def test_people_are_spread_over_the_numbers_in_turn(shop: Shop) -> None:
    shop.add_people(4)
    shop.add("nada")
    shop.add("+5511999990001")
    second = shop.number()
    channels = [ids.encode(ids.CHANNEL, channel.pk) for channel in (second, shop.channel, second)]

    people = shop.recipients(shop.compose(channels=channels))

    assert [person.channel_id for person in people] == [
        second.pk,
        shop.channel.pk,
        second.pk,
        shop.channel.pk,
        None,
        second.pk,
    ]


def test_who_talks_with_one_of_the_numbers_keeps_it(shop: Shop) -> None:
    shop.add_people(8)
    second, third = shop.number(), shop.number("Terceiro")
    people = [shop.contact(f"55119{90000000 + place}") for place in range(8)]

    def said(place: int, channel: Channel, status: str, days_ago: int) -> None:
        Message.objects.create(
            organization=shop.organization,
            channel=channel,
            contact=people[place],
            direction="in" if status == "received" else "out",
            status=status,
            address=str(people[place].identity),
            created_at=timezone.now() - timedelta(days=days_ago),
        )

    said(0, second, "received", 1)
    said(1, shop.channel, "read", 1)
    # The last one counts, and only what came or left, on a number of this broadcast.
    said(2, second, "received", 9)
    said(2, shop.channel, "sent", 2)
    said(3, shop.channel, "failed", 1)
    said(4, third, "received", 1)
    channels = [ids.encode(ids.CHANNEL, channel.pk) for channel in (shop.channel, second)]

    found = [person.channel_id for person in shop.recipients(shop.compose(channels=channels))]

    one, two = shop.channel.pk, second.pk
    assert found == [two, one, one, two, one, two, one, two]


def test_values_come_from_the_broadcast_or_the_person(shop: Shop) -> None:
    texts = [f"{text} {{{{curso}}}} em {{{{cidade}}}} às {{{{hora|19h}}}}" for text in TEXTS]
    shop.add("+5511999990001", attributes={"cidade": "Rio", "curso": "outro"})
    shop.add("+5511999990002", attributes={"cidade": " "})
    shop.add("+5511999990003", attributes={"cidade": None, "hora": "20h"})
    shop.add("+5511999990004", attributes={"cidade": 7})

    assert shop.states(shop.compose(variations=texts, variables={"curso": "Python"})) == [
        ("pending", ""),
        ("excluded", "missing_variable"),
        ("excluded", "missing_variable"),
        ("pending", ""),
    ]


def test_who_has_no_name_anywhere_lacks_one(shop: Shop) -> None:
    texts = [text.split("|")[0] + "}}" + text.split("}}", 1)[1] for text in TEXTS]
    shop.add("+5511999990001", name="Ana")
    shop.add("+5511999990002")
    shop.add("+5511999990003", attributes={"nome": "Bia"})
    (line,) = shop.add("+5511999990004")
    line.name = "Caio"
    line.save()

    assert shop.states(shop.compose(variations=texts)) == [
        ("pending", ""),
        ("excluded", "missing_variable"),
        ("pending", ""),
        ("pending", ""),
    ]


def test_a_text_over_4096_characters_excludes_the_person(shop: Shop) -> None:
    texts = [f"{place}{'a' * 3895} {{{{obs}}}}" for place in range(5)]
    for place, value in enumerate(["a" * 199, "a" * 200, "😀" * 199, "😀" * 200, "é" * 199]):
        shop.add(f"+551199999000{place}", attributes={"obs": value})

    assert [code for _state, code in shop.states(shop.compose(variations=texts))] == [
        "",
        "text_too_long",
        "",
        "text_too_long",
        "",
    ]


def test_only_the_words_that_a_person_gets_are_measured(shop: Shop) -> None:
    texts = [f"{place}{'a' * (4090 if place else 10)}{{{{nome}}}}" for place in range(5)]
    for place in range(30):
        shop.add(f"+55119999900{place:02}", name="Maria Aparecida")

    states = Counter(shop.states(shop.compose(variations=texts)))

    assert set(states) == {("pending", ""), ("excluded", "text_too_long")}


def test_nobody_to_reach_is_refused_and_leaves_nothing(shop: Shop) -> None:
    shop.add("nada")

    assert (refused(shop).code, refused(shop).attr) == ("empty_audience", "group_id")
    assert not Broadcast.objects.of(shop.organization).exists()
    assert not Stream.objects.of(shop.organization).exists()
    assert not Recipient.objects.of(shop.organization).exists()


@pytest.mark.parametrize(
    ("fields", "code", "attr"),
    [
        ({"variations": None}, "content_required", None),
        ({"template_name": "novo"}, "content_ambiguous", None),
        ({"variations": None, "template_name": "novo"}, "template_not_approved", "template_name"),
        ({"variations": []}, "min_5_variations_required", "variations"),
        ({"variations": TEXTS[:4]}, "min_5_variations_required", "variations"),
        (
            {"variations": (*TEXTS[:4], TEXTS[3].upper().replace("NOME", "nome"))},
            "variations_too_similar",
            "variations",
        ),
        ({"variations": ("Oi!", "oi", "OI...", " o i ", "Olá")}, "variations_too_similar", "variations"),
        ({"variations": (*TEXTS[:4], "{Oi|Olá {{nome}}")}, "invalid_variation", "variations.4"),
        ({"variations": (*TEXTS[:4], "Oi {{apelido}}")}, "invalid_variation", "variations.4"),
        ({"variations": (*TEXTS[:4], "{|}")}, "invalid_variation", "variations.4"),
        # Refused before any of it is parsed: these took a web thread ten seconds.
        ({"variations": tuple(f"Oi {n}" for n in range(51))}, "invalid_variation", "variations"),
        ({"variations": (*TEXTS[:4], "{a|b}" * 3000, *["{a|b}" * 3000] * 4)}, "invalid_variation", "variations"),
        ({"variations": ("", *TEXTS[:4])}, "invalid_variation", "variations.0"),
        ({"group": "grp_nenhum"}, "group_not_found", "group_id"),
        ({"channels": ["ch_nenhum"]}, "channel_not_found", "channel_ids"),
        ({"channels": ["ch_" + "0" * 32]}, "channel_not_found", "channel_ids"),
    ],
)
def test_refusals(shop: Shop, fields: dict[str, Any], code: str, attr: str | None) -> None:
    shop.add("+5511999990001")

    refusal = refused(shop, **fields)

    assert (refusal.code, refusal.attr) == (code, attr)
    assert not Stream.objects.of(shop.organization).exists()


def test_an_invalid_variation_names_line_and_column(shop: Shop) -> None:
    refusal = refused(shop, variations=(*TEXTS[:4], "Oi,\ntudo {bem"))

    assert "5" in refusal.detail
    assert "2" in refusal.detail
    assert "6" in refusal.detail


def test_an_attribute_of_anybody_is_a_known_name(shop: Shop) -> None:
    shop.add("+5511999990001")
    factories.ContactFactory.create(organization=shop.organization, attributes={"apelido": "Nana"})

    shop.compose(variations=(*TEXTS[:4], "Oi {{apelido|você}}"))


def test_an_attribute_of_a_stranger_is_not(shop: Shop) -> None:
    shop.add("+5511999990001")
    factories.ContactFactory.create(attributes={"apelido": "Nana"})

    assert refused(shop, variations=(*TEXTS[:4], "Oi {{apelido|você}}")).code == "invalid_variation"


def test_a_thousand_unknown_names_are_looked_up_once(shop: Shop) -> None:
    shop.add("+5511999990001")
    texts = [" ".join(f"{{{{nome{place}_{number}}}}}" for number in range(200)) for place in range(5)]

    with CaptureQueriesContext(connection) as queries:
        assert refused(shop, variations=texts).attr == "variations.0"

    assert len(queries) < 20


def test_without_a_default_number_one_must_be_named(shop: Shop) -> None:
    shop.add("+5511999990001")
    Channel.objects.of(shop.organization).update(is_default=False)

    assert refused(shop).code == "channel_required"


def test_a_number_in_its_first_days_takes_no_broadcast(shop: Shop) -> None:
    shop.add("+5511999990001")
    today = timezone.now().date()
    Channel.objects.of(shop.organization).update(in_use_since=today - timedelta(days=3))

    refusal = refused(shop)

    assert refusal.code == "channel_in_warmup"
    assert str(today.year) in refusal.detail


def test_an_archived_number_is_none(shop: Shop) -> None:
    shop.add("+5511999990001")
    channel = ids.encode(ids.CHANNEL, shop.channel.pk)
    Channel.objects.of(shop.organization).update(state=Channel.State.ARCHIVED)

    assert refused(shop, channels=[channel]).code == "channel_not_found"
    assert refused(shop).code == "channel_required"


@pytest.mark.parametrize("change", [{"role": "MEMBER"}, {"status": "INACTIVE"}])
def test_only_an_active_leader_may(shop: Shop, change: dict[str, str]) -> None:
    shop.add("+5511999990001")
    TeamMember.objects.of(shop.organization).update(**change)

    assert refused(shop).code == "group_forbidden"


def test_the_groups_own_owner_may(shop: Shop) -> None:
    owner = factories.MemberFactory.create(organization=shop.organization)
    shop.group.team, shop.group.owner = None, owner
    shop.group.save()
    shop.add("+5511999990001")

    assert refused(shop).code == "group_forbidden"
    draft = Draft(group=shop.group.external_id, variations=TEXTS)
    services.compose(organization=shop.organization, owner=owner, draft=draft, now=timezone.now())


def test_what_was_created_is_on_the_record(shop: Shop) -> None:
    shop.add("+5511999990001")

    broadcast = shop.compose()

    event = Event.objects.get(type="broadcast.created")
    assert event.subject == ids.encode(ids.BROADCAST, broadcast.pk)
    assert event.organization == shop.organization
    assert (event.actor_type, event.actor) == ("user", ids.encode(ids.USER, shop.leader.pk))


def test_nothing_is_queued_by_the_post_itself(shop: Shop) -> None:
    shop.add("+5511999990001")

    broadcast = shop.compose()

    assert broadcast.status == "queued"
    assert (broadcast.started_at, broadcast.expires_at) == (None, None)
    assert not Message.objects.of(shop.organization).exists()
