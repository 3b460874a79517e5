"""Each of WAHA's ways to write an id, a chat, a time and an ack."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from channels_waha import values
from messaging import ranks

NOW = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)
SECOND = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("true_5511999990001@c.us_3EB0AAAA", "3EB0AAAA"),
        ("false_120363000000000001@g.us_3A0001_5511999990001@c.us", "3A0001"),
        ("true_111111111111111@lid_3EB0AAAA", "3EB0AAAA"),
        ("true_5511999990001_1:12@s.whatsapp.net_3EB0AAAA", "3EB0AAAA"),
        ("3EB0AAAA", "3EB0AAAA"),
        ({"fromMe": True, "remote": "5511999990001@c.us", "id": "3EB0AAAA"}, "3EB0AAAA"),
        ({"_serialized": "true_5511999990001@c.us_3EB0AAAA"}, "3EB0AAAA"),
        ("true_odd_3EB0AAAA", "3EB0AAAA"),
        ("", None),
        ("true_5511999990001@c.us_", None),
        ("with blank", None),
        ("nul\0", None),
        ("\ud83d", None),
        ("x" * 129, None),
        (None, None),
        (7, None),
        ([], None),
        ({}, None),
    ],
)
def test_the_bare_id_is_found_in_every_form(written: Any, bare: str | None) -> None:
    assert values.bare_id(written) == bare


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"key": {"id": "3EB0AAAA", "remoteJid": "5511999990001@s.whatsapp.net"}}, "3EB0AAAA"),
        ({"id": "true_5511999990001@c.us_3EB0BBBB", "_data": None}, "3EB0BBBB"),
        ({"id": {"id": "3EB0CCCC", "_serialized": "true_5511999990001@c.us_3EB0CCCC"}}, "3EB0CCCC"),
        ({"id": {"_serialized": "true_5511999990001@c.us_3EB0DDDD"}}, "3EB0DDDD"),
        ({"key": None, "id": None}, None),
        ({"key": {"id": 7}, "id": "3EB0EEEE"}, "3EB0EEEE"),
        ({"sent": True}, None),
        ({}, None),
    ],
)
def test_the_id_of_an_answer_is_found_in_each_engines_shape(answer: dict[str, Any], found: str | None) -> None:
    assert values.answered_id(answer) == found


@pytest.mark.parametrize(
    ("written", "chat"),
    [
        ("5511999990001@c.us", "5511999990001@c.us"),
        ("5511999990001@s.whatsapp.net", "5511999990001@c.us"),
        ("5511999990001:12@s.whatsapp.net", "5511999990001@c.us"),
        ("551199990001@c.us", "551199990001@c.us"),
        ("5511999990001", "5511999990001@c.us"),
        ("111111111111111:31@lid", "111111111111111@lid"),
        ("120363000000000001@g.us", "120363000000000001@g.us"),
        ("status@broadcast", "status@broadcast"),
        ("120363111111111111@newsletter", "120363111111111111@newsletter"),
        ("0@c.us", None),
        ("@c.us", None),
        ("garbage", None),
        ("x" * 300_000 + "@c.us", None),
        ("12\0 3@g.us", None),
        (None, None),
        (5511999990001, None),
    ],
)
def test_a_chat_has_one_form(written: Any, chat: str | None) -> None:
    assert values.chat(written) == chat


@pytest.mark.parametrize(
    ("identifier", "phone"),
    [
        ("5511999990001@c.us", "+5511999990001"),
        # The ninth digit is a spelling, not another number.
        ("551199990001@c.us", "+5511999990001"),
        ("551133334444:7@s.whatsapp.net", "+551133334444"),
        ("111111111111111@lid", None),
        ("@c.us", None),
        ("", None),
        (None, None),
    ],
)
def test_a_phone_is_e164_and_canonical(identifier: Any, phone: str | None) -> None:
    assert values.phone(identifier) == phone


@pytest.mark.parametrize(
    "written",
    [
        1767225600000,
        1767225600,
        "1767225600",
        "1767225600000",
        1767225600.5,
        {"low": 1767225600, "high": 0, "unsigned": False},
        {"low": 1994041344 - 2**32, "high": 411, "unsigned": True},
    ],
)
def test_a_time_is_read_in_seconds_and_milliseconds(written: Any) -> None:
    found = values.moment(written, received_at=NOW)
    assert abs(found - SECOND) < timedelta(minutes=1), found


@pytest.mark.parametrize(
    "nonsense",
    [0, -1, 10**15, 10**400, float("nan"), float("inf"), "soon", "", "9" * 400, None, True, [], {}, {"low": "1"}],
)
def test_nonsense_is_the_time_of_receipt(nonsense: Any) -> None:
    assert values.moment(nonsense, received_at=NOW) == NOW


def test_a_clock_that_runs_ahead_is_held_back() -> None:
    ahead = (NOW + timedelta(days=3)).timestamp()
    assert values.moment(ahead, received_at=NOW) == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("ack", "name", "rank"),
    [
        (-1, "ERROR", ranks.FAILED),
        (0, "PENDING", None),
        (1, "SERVER", ranks.SENT),
        (2, "DEVICE", ranks.DELIVERED),
        (3, "READ", ranks.READ),
        (4, "PLAYED", ranks.PLAYED),
        (3.0, None, ranks.READ),
        ("2", None, ranks.DELIVERED),
        (None, "read", ranks.READ),
        (5, "UNKNOWN", None),
        (2.5, None, None),
        (True, None, None),
        (None, None, None),
        (float("nan"), "WHAT", None),
        ([], {}, None),
    ],
)
def test_acks_have_ranks(ack: Any, name: Any, rank: int | None) -> None:
    assert values.rank(ack, name) == rank


def test_text_is_what_postgresql_takes() -> None:
    assert values.text("promo \ud83d\0 👍") == "promo \ufffd\ufffd 👍"
    assert values.text(None) == ""
    assert values.word("a\0b \ud83dé", 10) == "ab"
