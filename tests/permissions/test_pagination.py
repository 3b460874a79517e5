"""Lists are walked by cursor, forwards and back, however much is added meanwhile."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlencode

import pytest

from tests import factories
from tests.permissions.conftest import NOTES, Caller, error


def walk(caller: Caller, link: str, direction: str = "next") -> list[list[str]]:
    pages = []
    address: str | None = link
    while address:
        body = caller.get(address).json()
        assert set(body) == {"next", "previous", "results"}
        pages.append([note["name"] for note in body["results"]])
        address = body[direction]
    return pages


@pytest.fixture
def notes(caller: Caller) -> list[str]:
    teams = factories.TeamFactory.create_batch(7, organization=caller.key.organization)
    factories.TeamFactory.create()
    return [team.name for team in reversed(teams)]


def test_all_are_seen_once_newest_first(caller: Caller, notes: list[str]) -> None:
    pages = walk(caller, f"{NOTES}?limit=3")

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [name for page in pages for name in page] == notes


def test_the_way_back_shows_the_same(caller: Caller, notes: list[str]) -> None:
    second = caller.get(f"{NOTES}?limit=3").json()["next"]
    third = caller.get(second).json()["next"]

    assert walk(caller, third, "previous") == [notes[6:], notes[3:6], notes[:3]]


def test_what_comes_meanwhile_moves_nothing(caller: Caller, notes: list[str]) -> None:
    second = caller.get(f"{NOTES}?limit=3").json()["next"]
    factories.TeamFactory.create(organization=caller.key.organization)

    assert [note["name"] for note in caller.get(second).json()["results"]] == notes[3:6]


def test_fifty_are_given_where_nothing_is_asked(caller: Caller) -> None:
    factories.TeamFactory.create_batch(51, organization=caller.key.organization)

    first = caller.get(NOTES).json()
    assert len(first["results"]) == 50
    assert first["previous"] is None
    assert len(caller.get(NOTES, limit=200).json()["results"]) == 51


@pytest.mark.parametrize("limit", ["0", "-1", "201", "a", "", "1.5", "１", "9" * 5000, " 3"])
def test_a_limit_is_a_number_up_to_200(caller: Caller, limit: str) -> None:
    assert error(caller.get(limit=limit)) == (400, "invalid_limit", "limit")


def cursor(**parts: Any) -> str:
    return base64.b64encode(urlencode(parts).encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "é",
        "a" * 5000,
        cursor(p="no-uuid"),
        cursor(p="\ud800".encode("utf-8", "surrogatepass")),
        cursor(p="a\x00b"),
        cursor(o="x"),
        base64.b64encode(b"\xff\xfe").decode(),
    ],
)
def test_a_cursor_is_one_of_ours(caller: Caller, text: str) -> None:
    factories.TeamFactory.create(organization=caller.key.organization)

    assert error(caller.get(cursor=text)) == (400, "invalid_cursor", "cursor")


@pytest.mark.parametrize("text", [cursor(o="-5"), cursor(o="9" * 30), cursor(r="1"), cursor(x="1"), ""])
def test_an_odd_cursor_does_no_harm(caller: Caller, text: str) -> None:
    factories.TeamFactory.create(organization=caller.key.organization)

    assert caller.get(cursor=text).status_code in {200, 400}
