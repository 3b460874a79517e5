"""The contract of broadcasts over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from broadcasts import selectors, services
from broadcasts.models import Broadcast
from events.models import Event
from messaging.models import Channel, Message
from permissions import ids
from permissions.models import Membership, TeamMember
from tests import factories
from tests.broadcasts.conftest import PATH, TEXTS, Shop, close_connection, url

pytestmark = pytest.mark.django_db

Error = Callable[[Any], tuple[int, str, str | None]]
MOVES = ("pause", "resume", "cancel", "retry-failed")


def test_a_post_is_accepted(shop: Shop) -> None:
    shop.add_people(2)
    shop.add("nada")

    answer = shop.post()

    body = answer.json()
    assert answer.status_code == 202
    assert set(body) == {
        "id",
        "broadcast_id",
        "public_id",
        "status",
        "total_recipients",
        "excluded_recipients",
        "scheduled_at",
        "expires_at",
        "estimated_finish_at",
        "warnings",
    }
    broadcast = Broadcast.objects.of(shop.organization).get()
    assert body["id"] == body["broadcast_id"] == ids.encode(ids.BROADCAST, broadcast.pk)
    assert body["public_id"] == broadcast.public_id
    assert (body["status"], body["warnings"]) == ("queued", [])
    assert (body["total_recipients"], body["excluded_recipients"]) == (2, 1)
    assert body["estimated_finish_at"] is not None
    assert answer["Location"] == url(broadcast)
    assert shop.get(answer["Location"]).json()["id"] == body["id"]


def test_a_broadcast_says_all_that_the_contract_names(shop: Shop) -> None:
    shop.add("+5511999990001")
    fields = {"name": "Lançamento", "variables": {"curso": "Python"}, "language": "pt_BR"}
    answer = shop.post(shop.body(**fields), Idempotency_Key="pedido-1")
    services.launch_due(now=timezone.now())

    body = shop.get(answer["Location"]).json()

    broadcast = Broadcast.objects.of(shop.organization).get()
    counts = body.pop("counts")
    assert set(counts) == set(selectors.WORDS)
    assert {word: number for word, number in counts.items() if number} == {"pending": 1}
    for name in ("created_at", "updated_at", "started_at", "expires_at", "estimated_finish_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", body.pop(name)), name
    assert body == {
        "id": ids.encode(ids.BROADCAST, broadcast.pk),
        "broadcast_id": ids.encode(ids.BROADCAST, broadcast.pk),
        "public_id": broadcast.public_id,
        "name": "Lançamento",
        "status": "sending",
        "owner_user_id": ids.encode(ids.USER, shop.leader.pk),
        "group_id": ids.encode(ids.GROUP, shop.group.pk),
        "channel_ids": [ids.encode(ids.CHANNEL, shop.channel.pk)],
        "template_name": None,
        "language": "pt_BR",
        "variations": list(TEXTS),
        "variables": {"curso": "Python"},
        "idempotency_key": "pedido-1",
        "total_count": 1,
        "sent_count": 0,
        "delivered_count": 0,
        "read_count": 0,
        "failed_count": 0,
        "waiting_for": None,
        "failure": None,
        "scheduled_at": None,
        "finished_at": None,
    }


@pytest.mark.parametrize("form", ["id", "public_id"])
def test_a_broadcast_is_found_by_both_its_names(shop: Shop, form: str) -> None:
    shop.add("+5511999990001")
    body = shop.post().json()

    for path in ("", "/recipients"):
        assert shop.get(f"{PATH}/{body[form]}{path}").status_code == 200
    assert shop.post({}, path=f"{PATH}/{body[form]}/pause").status_code == 200


def test_a_group_is_named_by_either_id(shop: Shop) -> None:
    shop.add("+5511999990001")

    for reference in (shop.group.external_id, ids.encode(ids.GROUP, shop.group.pk)):
        assert shop.post(shop.body(group_id=reference)).status_code == 202


# --- errors


@pytest.mark.parametrize(
    ("change", "status", "code", "attr"),
    [
        ({"send_at": "2026-12-01T09:00:00-03:00"}, 400, "unknown_field", "send_at"),
        ({"scheduled_at": "2026-12-01T09:00:00"}, 400, "invalid", "scheduled_at"),
        ({"scheduled_at": "2026-13-01T09:00:00Z"}, 400, "invalid", "scheduled_at"),
        ({"scheduled_at": 1796126400}, 400, "invalid", "scheduled_at"),
        ({"expires_at": "amanhã"}, 400, "invalid", "expires_at"),
        ({"media_id": 7}, 400, "invalid", "media_id"),
        ({"media_id": "med_1"}, 422, "media_not_supported", "media_id"),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, 422, "scheduled_in_past", "scheduled_at"),
        ({"scheduled_at": "9999-12-31T23:59:59Z"}, 422, "scheduled_too_late", "scheduled_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422, "expires_in_past", "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59Z"}, 422, "expires_too_late", "expires_at"),
        ({"variations": "Oi"}, 400, "not_a_list", "variations"),
        ({"variations": [1, *TEXTS]}, 400, "invalid", "variations.0"),
        ({"variations": {"a": "b"}}, 400, "not_a_list", "variations"),
        ({"variables": []}, 400, "not_a_dict", "variables"),
        ({"variables": {"curso": 1}}, 400, "invalid", "variables.curso"),
        ({"variables": {"curso": None}}, 400, "null", "variables.curso"),
        ({"group_id": 7}, 400, "invalid", "group_id"),
        ({"group_id": None}, 400, "null", "group_id"),
        ({"channel_ids": "ch_1"}, 400, "not_a_list", "channel_ids"),
        ({"name": ["a"]}, 400, "invalid", "name"),
        ({"name": "a\x00"}, 400, "null_characters_not_allowed", "name"),
        ({"name": "a" * 121}, 422, "max_length", "name"),
        ({"variations": None}, 422, "content_required", None),
        ({"template_name": "novo"}, 422, "content_ambiguous", None),
        ({"template_name": "novo", "variations": None}, 422, "template_not_approved", "template_name"),
        (
            {"template_name": "novo", "variations": None, "variables": {"1": "a", "2": "b"}},
            422,
            "template_not_approved",
            "template_name",
        ),
        (
            {"template_name": "novo", "variations": None, "variables": {"1": "a", "3": "b"}},
            422,
            "template_variables_mismatch",
            "variables",
        ),
        (
            {"template_name": "novo", "variations": None, "variables": {"1": "a", "curso": "b"}},
            422,
            "template_variables_mismatch",
            "variables",
        ),
        ({"variations": list(TEXTS[:4])}, 422, "min_5_variations_required", "variations"),
        ({"variations": [*TEXTS[:4], "Oi {"]}, 422, "invalid_variation", "variations.4"),
        ({"variations": ["Oi", "oi", "OI", "oi!", "Oi?"]}, 422, "variations_too_similar", "variations"),
        ({"group_id": "grp_x"}, 404, "group_not_found", None),
        ({"channel_ids": ["ch_x"]}, 404, "channel_not_found", None),
    ],
)
def test_errors_of_a_post(
    shop: Shop, error: Error, change: dict[str, Any], status: int, code: str, attr: str | None
) -> None:
    shop.add("+5511999990001")

    assert error(shop.post(shop.body(**change))) == (status, code, attr)
    assert not Broadcast.objects.of(shop.organization).exists()


def test_a_missing_group_is_a_missing_field(shop: Shop, error: Error) -> None:
    assert error(shop.post({"variations": list(TEXTS)})) == (400, "required", "group_id")


def test_errors_that_depend_on_the_shop(shop: Shop, error: Error) -> None:
    assert error(shop.post()) == (422, "empty_audience", "group_id")

    shop.add("+5511999990001")
    channels = Channel.objects.of(shop.organization)
    channels.update(in_use_since=timezone.now().date())
    assert error(shop.post()) == (422, "channel_in_warmup", "channel_ids")

    channels.update(is_default=False)
    assert error(shop.post()) == (422, "channel_required", "channel_ids")

    TeamMember.objects.of(shop.organization).update(status="INACTIVE")
    factories.TeamMemberFactory.create(organization=shop.organization)
    shop.leader.save()  # what is cached of him is dropped
    assert error(shop.post()) == (403, "group_forbidden", None)


def test_details_repeat_no_text_of_the_caller(shop: Shop) -> None:
    shop.add("+5511999990001")

    for change in ({"variations": [*TEXTS[:4], "segredo {"]}, {"group_id": "segredo"}, {"channel_ids": ["segredo"]}):
        assert "segredo" not in shop.post(shop.body(**change)).content.decode()


def test_who_calls_without_a_key_or_scope(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    reader = factories.ApiKeyFactory.create(
        organization=shop.organization, owner=shop.leader, scopes=["broadcast:read"]
    )
    other = factories.ApiKeyFactory.create(organization=shop.organization, owner=shop.leader, scopes=["messages:read"])
    broadcast = shop.compose()

    assert error(shop.client.post(PATH, json.dumps(shop.body()), content_type="application/json"))[:2] == (
        401,
        "invalid_api_key",
    )
    assert error(shop.post(key=reader))[:2] == (403, "insufficient_scope")
    assert error(shop.move(broadcast, "cancel", key=reader))[:2] == (403, "insufficient_scope")
    assert shop.get(url(broadcast), key=reader).status_code == 200
    assert error(shop.get(url(broadcast), key=other))[:2] == (403, "insufficient_scope")


# --- whose it is


def test_a_strangers_broadcast_does_not_exist(make_shop: Callable[[], Shop], error: Error) -> None:
    ours, theirs = make_shop(), make_shop()
    for shop in (ours, theirs):
        shop.add("+5511999990001")
    broadcast = theirs.compose()
    nobodys = f"{PATH}/bc_{'0' * 32}"

    for path in (url(broadcast), f"{PATH}/{broadcast.public_id}", nobodys, f"{PATH}/x"):
        assert error(ours.get(path)) == (404, "not_found", None)
        assert error(ours.get(f"{path}/recipients")) == (404, "not_found", None)
        for move in MOVES:
            assert error(ours.post({}, path=f"{path}/{move}")) == (404, "not_found", None)
    assert ours.get().json()["results"] == []
    assert error(ours.post(ours.body(group_id=ids.encode(ids.GROUP, theirs.group.pk))))[:2] == (404, "group_not_found")
    channel = ids.encode(ids.CHANNEL, theirs.channel.pk)
    assert error(ours.post(ours.body(channel_ids=[channel])))[:2] == (404, "channel_not_found")
    assert theirs.fresh(broadcast).status == "queued"


def test_a_colleague_sees_and_moves_only_his_own(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    colleague = factories.ApiKeyFactory.create(organization=shop.organization)

    for path in (url(broadcast), f"{url(broadcast)}/recipients"):
        assert error(shop.get(path, key=colleague))[:2] == (403, "permission_denied")
    for move in MOVES:
        assert error(shop.move(broadcast, move, key=colleague))[:2] == (403, "permission_denied")
    assert shop.get(key=colleague).json()["results"] == []


def test_an_admin_sees_and_moves_all(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    admin = factories.ApiKeyFactory.create(organization=shop.organization)
    Membership.objects.of(shop.organization).filter(user=admin.owner).update(role="admin")
    admin.owner.save()

    assert shop.get(url(broadcast), key=admin).status_code == 200
    assert len(shop.get(key=admin).json()["results"]) == 1
    assert shop.move(broadcast, "cancel", key=admin).json()["status"] == "canceled"


def test_a_key_that_reads_all_moves_nothing_of_others(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    reader = factories.ApiKeyFactory.create(organization=shop.organization, scopes=["broadcast:read", "broadcast:send"])

    assert shop.get(url(broadcast), key=reader).status_code == 200
    assert shop.move(broadcast, "cancel", key=reader).status_code == 403


# --- lists


def test_the_list_is_newest_first_and_in_pages(shop: Shop) -> None:
    shop.add("+5511999990001")
    made = [ids.encode(ids.BROADCAST, shop.compose().pk) for _number in range(3)]

    first = shop.get(limit=2).json()
    second = shop.client.get(first["next"], headers=factories.bearer(shop.key)).json()

    assert [each["id"] for each in first["results"] + second["results"]] == made[::-1]
    assert second["next"] is None


def test_the_list_costs_the_same_at_1_and_3_rows(shop: Shop) -> None:
    shop.add("+5511999990001")
    shop.get()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert shop.get().status_code == 200
        return len(captured)

    shop.launched()
    alone = queries()
    for _number in range(2):
        shop.fed()

    assert len(shop.get().json()["results"]) == 3
    assert queries() == alone


def test_the_list_by_status_and_group(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    sending, queued = shop.launched(), shop.compose()
    other = factories.GroupFactory.create(organization=shop.organization, team=shop.group.team)

    def found(**query: str) -> list[str]:
        return [each["id"] for each in shop.get(**query).json()["results"]]

    assert found(status="sending") == [ids.encode(ids.BROADCAST, sending.pk)]
    assert found(status="queued") == [ids.encode(ids.BROADCAST, queued.pk)]
    assert found(status="failed") == []
    for reference in (shop.group.external_id, ids.encode(ids.GROUP, shop.group.pk)):
        assert len(found(group_id=reference)) == 2
        assert len(found(group_id=reference, status="queued")) == 1
    assert found(group_id=other.external_id) == []
    for unknown in ("claimed", "", "SENDING"):
        assert error(shop.get(status=unknown)) == (400, "invalid_choice", "status")
    stranger = factories.GroupFactory.create()
    for unknown in ("grp_nenhum", "", ids.encode(ids.GROUP, stranger.pk)):
        assert error(shop.get(group_id=unknown)) == (400, "invalid_choice", "group_id")


def test_recipients_in_the_order_of_the_audience(shop: Shop) -> None:
    shop.add("+5511999990002", "nada", "551199990002")
    shop.add("+5511999990001", external_id="aluno-1")
    broadcast = shop.fed()
    shop.settle(broadcast, "read", 1, provider_id="3EB0AA", attempt=1)

    rows = shop.get(f"{url(broadcast)}/recipients").json()["results"]

    read, invalid, double, queued = rows
    assert [row["phone"] for row in rows] == ["5511999990002", "nada", "551199990002", "5511999990001"]
    assert set(read) == {
        "id",
        "recipient_id",
        "user_id",
        "contact_id",
        "phone",
        "status",
        "message_id",
        "wa_message_id",
        "error_code",
        "error_detail",
        "exclusion",
        "attempts",
        "updated_at",
    }
    assert (read["status"], read["wa_message_id"], read["attempts"]) == ("read", "3EB0AA", 1)
    assert read["message_id"] == ids.encode(ids.MESSAGE, shop.messages(broadcast)[0].pk)
    assert read["contact_id"] == ids.encode(ids.CONTACT, shop.contact("5511999990002").pk)
    assert (invalid["status"], invalid["exclusion"], invalid["message_id"]) == ("excluded", "invalid_phone", None)
    assert (invalid["contact_id"], invalid["error_code"]) == (None, None)
    assert (double["exclusion"], "+5511999990002" in double["error_detail"]) == ("duplicate", True)
    assert (queued["status"], queued["user_id"], queued["exclusion"]) == ("queued", "aluno-1", None)


def test_recipients_come_in_pages(shop: Shop) -> None:
    shop.add_people(5)
    broadcast = shop.compose()

    page = shop.get(f"{url(broadcast)}/recipients", limit=3).json()
    rest = shop.client.get(page["next"], headers=factories.bearer(shop.key)).json()

    assert [len(page["results"]), len(rest["results"]), rest["next"]] == [3, 2, None]


def test_recipients_by_status(shop: Shop, error: Error) -> None:
    shop.add_people(3)
    broadcast = shop.fed()
    Message.objects.of(shop.organization).filter(pk=shop.messages(broadcast)[0].pk).update(
        status="in_doubt", error_code="waha_timeout", error_sent="maybe"
    )
    shop.settle(broadcast, "failed", 1, error_code="not_on_whatsapp", error_sent="no")
    path = f"{url(broadcast)}/recipients"

    def outcomes(word: str) -> list[tuple[str, str | None]]:
        rows = shop.get(path, status=word).json()["results"]
        return [(row["status"], row["error_code"]) for row in rows]

    assert outcomes("in_doubt") == [("failed", "outcome_unknown")]
    assert outcomes("failed") == [("failed", "outcome_unknown"), ("failed", "not_on_whatsapp")]
    assert outcomes("queued") == [("queued", None)]
    assert outcomes("pending") == []
    for unknown in ("fed", "claimed", ""):
        assert error(shop.get(path, status=unknown)) == (400, "invalid_choice", "status")


# --- moves


def test_moves_answer_with_the_broadcast(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()

    paused = shop.move(broadcast, "pause")
    assert (paused.status_code, paused.json()["status"]) == (200, "paused")
    assert paused.json()["waiting_for"] == {"code": "broadcast_paused", "until": None}
    assert error(shop.move(broadcast, "pause"))[:2] == (409, "invalid_transition")
    assert shop.move(broadcast, "resume").json()["status"] == "sending"
    canceled = shop.move(broadcast, "cancel").json()
    assert (canceled["status"], canceled["counts"]["canceled"]) == ("canceled", 1)
    for move in MOVES:
        assert error(shop.move(broadcast, move))[:2] == (409, "invalid_transition")

    event = Event.objects.get(type="broadcast.canceled")
    assert (event.actor_type, event.actor) == ("api_key", ids.encode(ids.API_KEY, shop.key.pk))


def test_a_move_takes_no_fields(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()

    assert error(shop.post({"now": True}, path=f"{url(broadcast)}/pause")) == (400, "unknown_field", "now")
    headers = factories.bearer(shop.key)
    assert shop.client.generic("POST", f"{url(broadcast)}/pause", headers=headers).status_code == 200


def test_a_repeated_move_under_one_key_is_one_move(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.launched()

    answers = [shop.move(broadcast, "pause", Idempotency_Key="pausa") for _number in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1]["Idempotent-Replayed"] == "true"


# --- Idempotency-Key


def test_the_same_post_again_makes_nothing_new(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    first = shop.post(Idempotency_Key="pedido-1")
    shop.add("+5511999990002")

    again = shop.post(dict(reversed(shop.body().items())), Idempotency_Key="pedido-1")
    other = shop.post(shop.body(name="outro"), Idempotency_Key="pedido-1")

    assert (again.status_code, again.content, again["Location"]) == (202, first.content, first["Location"])
    assert again["Idempotent-Replayed"] == "true"
    assert error(other)[:2] == (422, "idempotency_key_reused")
    assert Broadcast.objects.of(shop.organization).count() == 1


def test_a_refused_post_leaves_its_key_free(shop: Shop, error: Error) -> None:
    assert error(shop.post(Idempotency_Key="pedido-1"))[1] == "empty_audience"
    shop.add("+5511999990001")

    assert shop.post(Idempotency_Key="pedido-1").status_code == 202


@pytest.mark.django_db(transaction=True)
def test_100_at_once_make_one_broadcast(make_shop: Callable[[], Shop]) -> None:
    shop = make_shop()
    shop.add("+5511999990001")
    key = shop.key
    start = threading.Barrier(8)

    def post(number: int) -> tuple[int, str | None]:
        try:
            if number < 8:
                start.wait(timeout=20)
            answer = shop.post(key=key, Idempotency_Key="pedido-1")
            return answer.status_code, answer.json().get("broadcast_id")
        finally:
            close_connection()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(100)))

    made = Broadcast.objects.of(shop.organization).get()
    assert {status for status, _broadcast in answers} <= {202, 409}
    assert {broadcast for status, broadcast in answers if status == 202} == {ids.encode(ids.BROADCAST, made.pk)}
    assert len(shop.recipients(made)) == 1
