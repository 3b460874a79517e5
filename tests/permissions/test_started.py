"""Where the effect needs the network: committed as started, run again until it is answered, one effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from rest_framework.exceptions import APIException

from permissions.api.refusals import RuleViolation
from permissions.models import IdempotencyRecord
from tests.permissions import notes_api
from tests.permissions.conftest import Caller, error

PATH = "/api/v1/remote-notes"
pytestmark = pytest.mark.django_db


class Unreachable(APIException):
    status_code = 502
    default_code = "gateway_unavailable"


class Killed(BaseException):
    """The process is gone; nothing of ours runs any more."""


@pytest.fixture(autouse=True)
def elsewhere() -> Iterator[None]:
    yield
    for kept in (notes_api.SHELF, notes_api.BEFORE, notes_api.AFTER):
        kept.clear()


def failing(what: BaseException) -> Callable[[], None]:
    def happen() -> None:
        raise what

    return happen


def post(caller: Caller, name: str = "a") -> Any:
    return caller.post({"name": name}, PATH, Idempotency_Key="pedido 1")


def made() -> list[str]:
    return list(notes_api.SHELF.values())


def record() -> IdempotencyRecord:
    return IdempotencyRecord.unscoped.get()


def test_the_first_answer_comes_again(caller: Caller) -> None:
    first, again = post(caller), post(caller)

    assert (first.status_code, first.content) == (201, again.content)
    assert again["Idempotent-Replayed"] == "true"
    assert not first.has_header("Idempotent-Replayed")
    assert made() == ["a"]
    assert record().status == 201
    assert record().busy_until is None


@pytest.mark.parametrize("place", ["BEFORE", "AFTER"])
def test_a_retry_after_a_failure_comes_to_the_same_end(caller: Caller, place: str) -> None:
    getattr(notes_api, place).append(failing(Unreachable()))

    assert error(post(caller)) == (502, "gateway_unavailable", None)
    assert record().status is None
    assert error(post(caller, "b")) == (422, "idempotency_key_reused", None)

    done = post(caller)
    assert done.status_code == 201
    assert not done.has_header("Idempotent-Replayed")
    assert made() == ["a"]
    assert post(caller).content == done.content


@pytest.mark.parametrize("place", ["BEFORE", "AFTER"])
def test_whoever_died_is_busy_until_his_time_is_over(caller: Caller, place: str) -> None:
    getattr(notes_api, place).append(failing(Killed()))
    with pytest.raises(Killed):
        post(caller)

    waiting = post(caller)
    assert error(waiting) == (409, "idempotency_key_in_flight", None)
    assert 1 <= int(waiting["Retry-After"]) <= 60

    IdempotencyRecord.unscoped.update(busy_until=timezone.now() - timedelta(seconds=1))
    assert post(caller).status_code == 201
    assert made() == ["a"]


def test_a_refusal_frees_the_key(caller: Caller) -> None:
    notes_api.BEFORE.append(failing(RuleViolation("against_a_rule", "Não pode.")))

    assert error(post(caller)) == (422, "against_a_rule", None)
    assert not IdempotencyRecord.unscoped.exists()
    assert post(caller, "b").status_code == 201


def test_a_refusal_after_a_failure_frees_nothing(caller: Caller) -> None:
    notes_api.AFTER += [failing(Unreachable()), failing(RuleViolation("against_a_rule", "Não pode."))]

    assert [post(caller).status_code for _ in range(2)] == [502, 422]
    assert error(post(caller, "b")) == (422, "idempotency_key_reused", None)
    assert post(caller).status_code == 201
    assert made() == ["a"]


def test_without_a_key_each_request_makes_its_own(caller: Caller) -> None:
    assert [caller.post({"name": name}, PATH).status_code for name in ("a", "a")] == [201, 201]
    assert made() == ["a", "a"]
    assert not IdempotencyRecord.unscoped.exists()


def test_a_started_request_is_forgotten_like_an_answered_one(caller: Caller) -> None:
    notes_api.BEFORE.append(failing(Unreachable()))
    post(caller)
    expires_at = record().expires_at
    assert expires_at is not None
    assert expires_at - timezone.now() > timedelta(hours=24)


@pytest.mark.django_db(transaction=True)
def test_it_runs_in_no_transaction_and_alone(caller: Caller) -> None:
    begun, go_on = Event(), Event()
    inside: list[bool] = []

    def wait() -> None:
        inside.append(connection.in_atomic_block)
        begun.set()
        assert go_on.wait(30)

    def first() -> Any:
        try:
            return post(Caller(caller.key, Client()))
        finally:
            connections.close_all()

    notes_api.AFTER.append(wait)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(first)
        try:
            assert begun.wait(30)
            second = post(caller)
        finally:
            go_on.set()
        answered = running.result(30)

    assert inside == [False]
    assert error(second) == (409, "idempotency_key_in_flight", None)
    assert answered.status_code == 201
    assert post(caller)["Idempotent-Replayed"] == "true"
    assert made() == ["a"]


def test_of_two_that_overlap_the_first_answer_stands(caller: Caller) -> None:
    answers: list[Any] = []

    def overtaken() -> None:
        IdempotencyRecord.unscoped.update(busy_until=timezone.now() - timedelta(seconds=1))
        answers.append(post(caller))

    notes_api.AFTER.append(overtaken)
    slow = post(caller)

    assert slow.status_code == answers[0].status_code == 201
    assert made() == ["a"]
    assert record().attempts == 2
    assert post(caller).content == answers[0].content
