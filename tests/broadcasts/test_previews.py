"""What a broadcast would be, and that looking leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from audience import consent
from audience.models import Contact
from broadcasts.models import Broadcast, Recipient
from events import services as events
from events.models import Event
from messaging import db
from messaging import services as messaging
from messaging.models import Channel, Stream
from permissions import ids
from permissions.models import IdempotencyRecord, Organization
from tests import factories
from tests.broadcasts.conftest import PATH, TEXTS, Shop

pytestmark = pytest.mark.django_db

Error = Callable[[Any], tuple[int, str, str | None]]
PREVIEW = f"{PATH}/preview"


def preview(shop: Shop, **fields: Any) -> Any:
    return shop.post(shop.body(**fields), path=PREVIEW)


def codes(findings: list[dict[str, str]]) -> set[str]:
    assert all(finding["detail"] for finding in findings)
    return {finding["code"] for finding in findings}


def test_it_says_what_the_post_then_does(shop: Shop) -> None:
    shop.add_people(7)
    shop.add("nada", "tampouco", "551190000001")
    blocked = shop.contact("5511990000002")
    consent.block(contact=blocked, reason="", actor=events.user(shop.leader), now=timezone.now())

    seen = preview(shop)

    assert seen.status_code == 200
    body = seen.json()
    assert (body["total_recipients"], body["excluded_recipients"]) == (6, 4)
    assert body["exclusions"] == [
        {"reason": "invalid_phone", "count": 2},
        {"reason": "duplicate", "count": 1},
        {"reason": "opted_out", "count": 1},
    ]
    assert (body["status"], body["warnings"], body["risks"]) == ("queued", [], [])
    assert body["channel_ids"] == [ids.encode(ids.CHANNEL, shop.channel.pk)]
    assert body["group_id"] == ids.encode(ids.GROUP, shop.group.pk)
    made = shop.post().json()
    for name in ("status", "total_recipients", "excluded_recipients"):
        assert body[name] == made[name]


def test_five_people_and_what_they_would_read(shop: Shop) -> None:
    shop.add("nada")
    shop.add_people(7)

    samples = preview(shop, variations=[f"{place} {{{{nome}}}} {{a|b}}" for place in range(5)]).json()["samples"]

    assert [sample["phone"] for sample in samples] == [f"55119{90000000 + place}" for place in range(5)]
    for place, sample in enumerate(samples):
        assert sample["name"] == f"Pessoa {place}"
        assert sample["text"][1:-1] == f" Pessoa {place} "
        assert sample["text"][0] in "01234"
        assert sample["text"][-1] in "ab"


def test_nothing_stays(shop: Shop) -> None:
    shop.add_people(2)
    before = Event.objects.count()

    assert shop.post(path=PREVIEW, Idempotency_Key="olhar").status_code == 200

    for model in (Broadcast, Recipient, Stream, IdempotencyRecord):
        assert not model.unscoped.exists()
    assert Event.objects.count() == before
    # The key is still free for the broadcast itself.
    assert shop.post(Idempotency_Key="olhar").status_code == 202


def test_a_wrong_key_is_wrong_here_too(shop: Shop, error: Error) -> None:
    assert error(shop.post(path=PREVIEW, Idempotency_Key="a" * 256))[:2] == (422, "invalid_idempotency_key")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"surprise": 1}, 400, "unknown_field"),
        ({"variations": list(TEXTS[:4])}, 422, "min_5_variations_required"),
        ({"variations": None}, 422, "content_required"),
        ({"media_id": "med_1"}, 422, "media_not_supported"),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, 422, "scheduled_in_past"),
        ({"group_id": "grp_x"}, 404, "group_not_found"),
        ({"channel_ids": ["ch_x"]}, 404, "channel_not_found"),
    ],
)
def test_it_refuses_what_the_post_refuses(
    shop: Shop, error: Error, change: dict[str, Any], status: int, code: str
) -> None:
    shop.add("+5511999990001")

    assert error(preview(shop, **change))[:2] == (status, code)


def test_who_may_not_send_may_not_look(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    other = factories.ApiKeyFactory.create(organization=shop.organization)
    reader = factories.ApiKeyFactory.create(
        organization=shop.organization, owner=shop.leader, scopes=["broadcast:read"]
    )

    assert error(shop.post(path=PREVIEW, key=other))[:2] == (403, "group_forbidden")
    assert error(shop.post(path=PREVIEW, key=reader))[:2] == (403, "insufficient_scope")


def test_nobody_to_reach_is_what_one_wants_to_see(shop: Shop) -> None:
    shop.add("nada")

    body = preview(shop).json()

    assert (body["total_recipients"], body["samples"], body["plan"]) == (0, [], [])
    assert body["exclusions"] == [{"reason": "invalid_phone", "count": 1}]
    assert codes(body["warnings"]) == {"empty_audience"}


def test_many_people_would_wait_for_an_admin(shop: Shop) -> None:
    shop.add_people(3)
    Organization.objects.filter(pk=shop.organization.pk).update(review_threshold=2)

    body = preview(shop).json()

    assert (body["status"], body["estimated_finish_at"]) == ("pending_review", None)
    assert sum(day["messages"] for day in body["plan"]) == 3


def test_the_plan_fills_each_day_up_to_its_limit(shop: Shop) -> None:
    shop.add_people(25)
    Channel.objects.of(shop.organization).update(daily_cap=10)
    start = (timezone.now() + timedelta(days=1)).replace(hour=15, minute=0, second=0, microsecond=0)

    body = preview(shop, scheduled_at=start.isoformat()).json()

    first = start.date()
    assert body["plan"] == [
        {"date": str(first + timedelta(days=day)), "messages": number} for day, number in enumerate((10, 10, 5))
    ]
    assert datetime.fromisoformat(body["estimated_finish_at"]).date() == first + timedelta(days=2)
    assert codes(body["warnings"]) == {"several_days"}
    assert body["too_late_recipients"] == 0


def test_what_the_end_cuts_off_is_counted(shop: Shop) -> None:
    shop.add_people(25)
    Channel.objects.of(shop.organization).update(daily_cap=10)
    start = (timezone.now() + timedelta(days=1)).replace(hour=15, minute=0, second=0, microsecond=0)

    body = preview(shop, scheduled_at=start.isoformat(), expires_at=(start + timedelta(hours=6)).isoformat()).json()

    assert body["plan"] == [{"date": str(start.date()), "messages": 10}]
    assert body["too_late_recipients"] == 15
    assert codes(body["warnings"]) == {"ends_before_done"}


@pytest.mark.parametrize(
    ("assignment", "code", "known"),
    [
        ("connected = false", "channel_disconnected", False),
        ("holds = '{phone_changed}'", "channel_held", False),
        ("open_from = clock_timestamp() + interval '1 hour'", "outside_window", True),
        ("used = cap_soft", "daily_limit", True),
    ],
)
def test_warnings_of_the_number(shop: Shop, assignment: str, code: str, known: bool) -> None:
    shop.add("+5511999990001")
    db.rows(f"UPDATE lanes SET {assignment} WHERE channel_id = %s", [shop.channel.pk])

    seen, made = preview(shop).json(), shop.post().json()

    for body in (seen, made):
        assert code in codes(body["warnings"])
        assert (body["estimated_finish_at"] is not None) is known
    assert sum(day["messages"] for day in seen["plan"]) == 1


def test_one_number_of_two_that_is_away(shop: Shop) -> None:
    shop.add_people(2)
    second = shop.number()
    messaging.set_connected(second.pk, connected=False, now=timezone.now())

    body = preview(shop, channel_ids=[ids.encode(ids.CHANNEL, each.pk) for each in (shop.channel, second)]).json()

    assert body["warnings"] == [{"code": "channel_disconnected", "detail": "1 número está desconectado."}]


# --- risks


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Veja https://loja.example/curso, {{nome|você}}", set()),
        ("Veja https://bit.ly/abc, {{nome|você}}", {"short_link"}),
        ("Veja encurtador.com.br/abc, {{nome|você}}", {"short_link"}),
        ("Veja https://a.example e https://b.example", {"many_links"}),
        ("PROMOÇÃO IMPERDÍVEL SÓ HOJE, {{nome|você}}!!!", {"capitals"}),
        ("PIX e CNPJ: {{nome|você}}, olhe aqui com calma", set()),
    ],
)
def test_risks_in_a_text(shop: Shop, text: str, found: set[str]) -> None:
    shop.add("+5511999990001")

    body = preview(shop, variations=[*TEXTS[:4], text]).json()

    assert codes(body["risks"]) == found
    assert body["warnings"] == []


LONG = "chegou o curso novo de pão de queijo da nossa loja com aulas ao vivo toda semana"


def test_the_third_text_that_is_so_alike(shop: Shop) -> None:
    shop.add("+5511999990001")

    def texts(*alike: str) -> list[str]:
        return [*alike, *TEXTS[: 5 - len(alike)]]

    assert preview(shop, variations=texts(f"Oi, {LONG}", f"Olá, {LONG}")).json()["risks"] == []
    shop.compose(variations=texts(f"Oi, {LONG}", f"Olá, {LONG}"))

    (risk,) = preview(shop, variations=[*TEXTS[1:], f"Ei, {LONG}"]).json()["risks"]

    assert risk["code"] == "similar_text"
    assert risk["detail"].endswith("5.")
    # Those of another number, or of a broadcast that said nothing to anybody, are no repetition of this one.
    second = shop.number()
    fields = {"variations": [*TEXTS[1:], f"Ei, {LONG}"], "channel_ids": [ids.encode(ids.CHANNEL, second.pk)]}
    assert preview(shop, **fields).json()["risks"] == []
    Broadcast.objects.of(shop.organization).update(status="canceled")
    assert preview(shop, variations=fields["variations"]).json()["risks"] == []


def test_only_the_last_20_texts_count(shop: Shop) -> None:
    shop.add("+5511999990001")
    shop.compose(variations=[f"Oi, {LONG}", f"Olá, {LONG}", *TEXTS[:3]])
    fruits = ["uva", "maçã", "pera", "caqui", "kiwi"]
    for place in range(3):
        shop.compose(variations=[f"hoje tem {fruit} número {place} na feira" for fruit in fruits])

    assert len(preview(shop, variations=[f"Ei, {LONG}", *TEXTS[:4]]).json()["risks"]) == 1
    shop.compose(variations=[f"amanhã tem {fruit} de novo na feira livre" for fruit in fruits])
    assert preview(shop, variations=[f"Ei, {LONG}", *TEXTS[:4]]).json()["risks"] == []


def test_many_people_who_were_never_written_to(shop: Shop) -> None:
    shop.add_people(6)
    db.rows("UPDATE lanes SET cap_soft = 10 WHERE channel_id = %s", [shop.channel.pk])

    (risk,) = preview(shop).json()["risks"]
    assert risk["code"] == "new_people"
    assert "6" in risk["detail"]
    assert "5" in risk["detail"]

    messaging.queue_single(
        channel=shop.channel,
        address="5511990000000",
        text="oi",
        priority=0,  # type: ignore[arg-type]
        now=timezone.now(),
        contact_id=Contact.objects.of(shop.organization).order_by("pk")[0].pk,
    )
    assert preview(shop).json()["risks"] == []
    assert shop.post().json()["warnings"] == []
