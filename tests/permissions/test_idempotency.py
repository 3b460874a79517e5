"""The same POST twice has one effect and one answer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from permissions import services
from permissions.models import ApiKey, IdempotencyRecord, Team
from tests import factories
from tests.permissions.conftest import NOTES, Caller, error

pytestmark = pytest.mark.django_db


def post(caller: Caller, body: Any, key: str = "pedido 1", path: str = NOTES) -> Any:
    return caller.post(body, path, Idempotency_Key=key)


def names(caller: Caller) -> list[str]:
    return list(Team.objects.of(caller.key.organization).order_by("id").values_list("name", flat=True))


def test_the_first_answer_comes_again(caller: Caller) -> None:
    first = post(caller, '{"name": "a", "variables": {"x": "1", "y": "2"}}')
    again = post(caller, '{"variables":{"y":"2","x":"1"},"name":"\\u0061"}')

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert first["Location"] == again["Location"]
    assert not first.has_header("Idempotent-Replayed")
    assert again["Idempotent-Replayed"] == "true"
    assert first["X-Request-Id"] != again["X-Request-Id"]
    assert names(caller) == ["a"]


def test_the_slash_form_is_the_same_path(caller: Caller) -> None:
    post(caller, {"name": "a"})

    assert post(caller, {"name": "a"}, path=f"{NOTES}/")["Idempotent-Replayed"] == "true"


def test_without_a_key_every_post_counts(caller: Caller) -> None:
    assert [caller.post({"name": name}).status_code for name in ("a", "b")] == [201, 201]
    assert names(caller) == ["a", "b"]
    assert not IdempotencyRecord.unscoped.exists()


def test_another_body_is_refused(caller: Caller) -> None:
    post(caller, {"name": "a"})

    assert error(post(caller, {"name": "b"})) == (422, "idempotency_key_reused", None)
    assert names(caller) == ["a"]


@pytest.mark.parametrize("key", ["", "a" * 256, "chávez", "a\tb", "a\x7f"])
def test_a_key_is_printable_ascii(caller: Caller, key: str) -> None:
    assert error(post(caller, {"name": "a"}, key)) == (422, "invalid_idempotency_key", None)
    assert names(caller) == []


@pytest.mark.parametrize("key", ["a", "~" * 255, "a key of words, and more; \\'\""])
def test_any_printable_key_will_do(caller: Caller, key: str) -> None:
    assert post(caller, {"name": "a"}, key).status_code == 201
    assert post(caller, {"name": "a"}, key)["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("name", ["regra", "conflito", "erro", 7])
def test_what_had_no_effect_is_not_kept(caller: Caller, name: Any) -> None:
    assert post(caller, {"name": name}).status_code in {400, 409, 422, 500}
    assert names(caller) == []

    assert post(caller, {"name": "a"}).status_code == 201
    assert names(caller) == ["a"]


def test_a_key_belongs_to_its_owner(caller: Caller) -> None:
    post(caller, {"name": "a"})
    colleague = factories.ApiKeyFactory.create(organization=caller.key.organization)
    successor = factories.ApiKeyFactory.create(organization=caller.key.organization, owner=caller.key.owner)
    abroad = factories.MembershipFactory.create(user=caller.key.owner)
    elsewhere = factories.ApiKeyFactory.create(organization=abroad.organization, owner=caller.key.owner)

    assert post(Caller(colleague, caller.client), {"name": "b"}).status_code == 201
    assert post(Caller(elsewhere, caller.client), {"name": "c"}).status_code == 201
    # The keys of one owner rotate without a second effect.
    assert post(Caller(successor, caller.client), {"name": "a"})["Idempotent-Replayed"] == "true"


def test_a_revoked_key_replays_nothing(caller: Caller) -> None:
    post(caller, {"name": "a"})
    ApiKey.unscoped.update(revoked_at=timezone.now())

    assert post(caller, {"name": "a"}).status_code == 401


def test_an_answer_is_forgotten_after_its_time(caller: Caller) -> None:
    post(caller, {"name": "a"})
    (record,) = IdempotencyRecord.unscoped.all()
    assert record.expires_at is not None
    assert record.expires_at - timezone.now() > timedelta(hours=24)

    IdempotencyRecord.unscoped.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert post(caller, {"name": "b"}).status_code == 201
    assert names(caller) == ["a", "b"]


def test_the_sweep_takes_what_is_over(caller: Caller) -> None:
    for key in ("a", "b", "c"):
        post(caller, {"name": key}, key)
    now = timezone.now()
    IdempotencyRecord.unscoped.filter(key="a").update(expires_at=now)
    # What is kept as long as a broadcast has no end.
    IdempotencyRecord.unscoped.filter(key="b").update(expires_at=None)

    assert services.sweep_idempotency_records(now=now) == 1
    assert set(IdempotencyRecord.unscoped.values_list("key", flat=True)) == {"b", "c"}


@pytest.mark.django_db(transaction=True)
def test_while_the_first_runs_the_second_is_told_to_wait(caller: Caller) -> None:
    name = f"{caller.key.organization.pk}:{caller.key.owner.pk}:pedido 1"

    def elsewhere() -> Any:
        try:
            return post(Caller(caller.key, Client()), {"name": "a"})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 3))", [name])
            refused = pool.submit(elsewhere).result()
        served = pool.submit(elsewhere).result()

    assert error(refused) == (409, "idempotency_key_in_flight", None)
    assert int(refused["Retry-After"]) >= 1
    assert served.status_code == 201


@pytest.mark.django_db(transaction=True)
def test_many_at_once_have_one_effect(caller: Caller) -> None:
    together = threading.Barrier(4)

    def rush() -> list[Any]:
        try:
            together.wait()
            return [post(Caller(caller.key, Client()), {"name": "a"}) for _ in range(10)]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = [answer for future in [pool.submit(rush) for _ in range(4)] for answer in future.result()]

    assert names(caller) == ["a"]
    assert {answer.status_code for answer in answers} <= {201, 409}
    bodies = {answer.content for answer in answers if answer.status_code == 201}
    assert len(bodies) == 1
    assert sum(not answer.has_header("Idempotent-Replayed") for answer in answers if answer.status_code == 201) == 1


def send_file(caller: Caller, content: bytes, name: str = "a", file_name: str = "foto.png") -> Any:
    file = SimpleUploadedFile(file_name, content, "image/png")
    headers = factories.bearer(caller.key) | {"Idempotency-Key": "pedido 1"}
    return caller.client.post("/api/v1/files", {"name": name, "file": file}, headers=headers)


def test_a_form_is_the_same_where_its_parts_are(caller: Caller) -> None:
    first = send_file(caller, b"x" * 100_000)

    assert first.json() == {"size": 100_000, "name": "a foto.png"}
    again = send_file(caller, b"x" * 100_000)
    assert (again["Idempotent-Replayed"], again.content) == ("true", first.content)
    for other in (
        send_file(caller, b"y" * 100_000),
        send_file(caller, b"x" * 100_000, name="b"),
        send_file(caller, b"x" * 100_000, file_name="outra.png"),
    ):
        assert error(other) == (422, "idempotency_key_reused", None)
    assert names(caller) == ["a foto.png"]


def test_a_form_has_no_null_and_json_is_none(caller: Caller) -> None:
    assert error(send_file(caller, b"x", name="a\x00")) == (400, "null_characters_not_allowed", "name.0")
    assert error(caller.post({"name": "a"}, "/api/v1/files")) == (415, "unsupported_media_type", None)
