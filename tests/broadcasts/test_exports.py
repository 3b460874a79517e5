"""The people of a broadcast as a file: every row once, and nothing that a spreadsheet computes."""

from __future__ import annotations

import csv
import io
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from broadcasts import exports
from broadcasts.models import Broadcast, Recipient
from permissions.ids import new_id
from permissions.models import Membership
from tests import factories
from tests.broadcasts.conftest import Shop, url

Error = Callable[[Any], tuple[int, str, str | None]]


def content(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def rows(answer: Any, delimiter: str = ",") -> list[dict[str, str]]:
    text = content(answer).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def path(broadcast: Broadcast) -> str:
    return f"{url(broadcast)}/recipients.csv"


@pytest.mark.django_db
def test_it_says_what_the_list_says(shop: Shop) -> None:
    shop.add("+5511999990001", external_id="aluno-1", name="Ana")
    shop.add("nada", "+5511999990002", "551199990002")
    broadcast = shop.fed()
    shop.settle(broadcast, "read", 1, provider_id="3EB0AA", attempt=1)

    listed = shop.get(f"{url(broadcast)}/recipients").json()["results"]
    filed = rows(shop.get(path(broadcast)))

    assert list(filed[0]) == list(exports.COLUMNS)
    for said, line in zip(listed, filed, strict=True):
        del said["id"]
        assert {name: str(value if value is not None else "") for name, value in said.items()} == {
            **line,
            "error_detail": line["error_detail"],
            "phone": line["phone"].removeprefix("'"),
        }


@pytest.mark.django_db
def test_its_headers_and_form(shop: Shop) -> None:
    shop.add_people(2)
    broadcast = shop.compose()

    answer = shop.get(path(broadcast))

    assert answer.status_code == 200
    assert answer.streaming
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Cache-Control"] == "no-store"
    assert answer["Content-Disposition"] == (f'attachment; filename="broadcast-{broadcast.public_id}-recipients.csv"')
    written = content(answer)
    assert written.startswith(b"\xef\xbb\xbfrecipient_id,")
    assert written.count(b"\r\n") == 3


@pytest.mark.django_db
@pytest.mark.parametrize("accept", ["text/csv", "*/*", "application/json", "text/html,application/xhtml+xml"])
def test_whatever_is_accepted(shop: Shop, error: Error, accept: str) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    headers = factories.bearer(shop.key) | {"Accept": accept}

    assert shop.client.get(path(broadcast), headers=headers)["Content-Type"].startswith("text/csv")
    assert error(shop.client.get(f"{path(broadcast)}?status=x", headers=headers))[:2] == (400, "invalid_choice")


@pytest.mark.django_db
def test_the_same_filter(shop: Shop, error: Error) -> None:
    shop.add_people(3)
    shop.add("nada")
    broadcast = shop.fed()
    shop.settle(broadcast, "in_doubt", 1, error_code="waha_timeout", error_sent="maybe")
    shop.settle(broadcast, "failed", 1, error_code="not_on_whatsapp", error_sent="no")

    def outcomes(word: str) -> list[tuple[str, str]]:
        return [(row["status"], row["error_code"]) for row in rows(shop.get(path(broadcast), status=word))]

    assert outcomes("failed") == [("failed", "outcome_unknown"), ("failed", "not_on_whatsapp")]
    assert outcomes("in_doubt") == [("failed", "outcome_unknown")]
    assert outcomes("excluded") == [("excluded", "")]
    assert outcomes("read") == []
    for unknown in ("fed", ""):
        assert error(shop.get(path(broadcast), status=unknown)) == (400, "invalid_choice", "status")


@pytest.mark.django_db
def test_semicolons_for_a_brazilian_spreadsheet(shop: Shop, error: Error) -> None:
    shop.add("+5511999990001")
    broadcast = shop.compose()

    (row,) = rows(shop.get(path(broadcast), separator="semicolon"), ";")

    assert row["phone"] == "5511999990001"
    assert error(shop.get(path(broadcast), separator=";")) == (400, "invalid_choice", "separator")


@pytest.mark.django_db
def test_what_was_given_as_a_phone_is_computed_by_nobody(shop: Shop) -> None:
    given = ["=HYPERLINK(A1)", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "  =1", "＝1", "a;=1", "a, b"]
    shop.add("+5511999990001", *given)
    broadcast = shop.compose()

    phones = [row["phone"] for row in rows(shop.get(path(broadcast)))]

    assert phones[0] == "5511999990001"
    for text, said in zip(given, phones[1:], strict=True):
        assert said.replace("'", "") == text.replace("'", "")
    assert phones[1:] == [
        "'=HYPERLINK(A1)",
        "'+1+cmd|' /C calc'!A0",
        "'-2+3",
        "'@SUM(A1)",
        "'\t'=1",
        "'  =1",
        "'＝1",
        "a;'=1",
        "a, b",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ana", "Ana"),
        ("", ""),
        ("5511999990001", "5511999990001"),
        ("+5511999990001", "'+5511999990001"),
        ("Ana = Bia", "Ana = Bia"),
        ("2026-11-30", "2026-11-30"),
        ("=1+1", "'=1+1"),
        ("\u200b=1", "'\u200b=1"),
        ("\ufeff\xa0@a", "'\ufeff\xa0@a"),
        ("\rA", "'\rA"),
        ("\tA", "'\tA"),
        ("a\n=1", "a\n'=1"),
        ("a,-1", "a,'-1"),
    ],
)
def test_cells(text: str, said: str) -> None:
    assert exports.safe(text) == said


@pytest.mark.django_db
def test_whose_it_is(make_shop: Callable[[], Shop], error: Error) -> None:
    ours, theirs = make_shop(), make_shop()
    theirs.add("+5511999990001")
    broadcast = theirs.compose()
    colleague = factories.ApiKeyFactory.create(organization=theirs.organization)

    assert error(ours.get(path(broadcast)))[:2] == (404, "not_found")
    assert error(theirs.get(path(broadcast), key=colleague))[:2] == (403, "permission_denied")
    Membership.objects.of(theirs.organization).filter(user=colleague.owner).update(role="admin")
    colleague.owner.save()
    assert theirs.get(path(broadcast), key=colleague).status_code == 200


@pytest.fixture
def many(shop: Shop) -> Broadcast:
    shop.add("+5511999990001")
    broadcast = shop.compose()
    Recipient.unscoped.bulk_create(
        (
            Recipient(
                organization=shop.organization,
                broadcast=broadcast,
                person_key=str(place),
                phone=f"55119{place:08}",
                position=place,
                message_id=new_id(),
                state="canceled",
                updated_at=timezone.now(),
            )
            for place in range(2, 20_001)
        ),
        batch_size=5000,
    )
    return broadcast


@pytest.mark.django_db
def test_a_long_file_is_read_in_pieces_and_each_line_once(shop: Shop, many: Broadcast) -> None:
    with CaptureQueriesContext(connection) as queries:
        pieces = list(exports.lines(many))
    text = b"".join(pieces).decode("utf-8-sig")

    phones = [line["phone"] for line in csv.DictReader(io.StringIO(text))]
    assert phones == ["5511999990001", *(f"55119{place:08}" for place in range(2, 20_001))]
    assert len(pieces) == 11
    assert len(queries) <= 2 * len(pieces)


@pytest.mark.django_db
def test_memory_holds_one_piece(many: Broadcast) -> None:
    def peak(number: int) -> int:
        tracemalloc.start()
        file = exports.lines(many)
        for _piece in range(number):
            next(file, None)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(2)
    assert peak(11) < 1.3 * peak(3)
