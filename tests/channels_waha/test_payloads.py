"""Webhooks as WAHA posts them, as it might, and as it never should."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels_waha import payloads
from messaging import ranks
from messaging.adapters import AccountChange, Ack, Echo, ParsedEvent, UnreadableEvent
from tests.channels_waha import recorded
from tests.channels_waha.recorded import Delivery

NOW = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)
SENT_MS = 1795962745000


def parse(event: Any, *, session: str = "loja_1") -> ParsedEvent:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return payloads.parse(body, session_name=session, received_at=NOW)


def envelope(event: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {"event": event, "session": "loja_1", "timestamp": SENT_MS, "payload": payload, "me": None, **more}


def updates(event: str, payload: Any, **more: Any) -> list[Any]:
    return list(parse(envelope(event, payload, **more)).updates)


def recorded_updates(event: str) -> list[Any]:
    found = (parse(delivery.body, session=recorded.SESSION) for delivery in recorded.deliveries(event))
    return [update for parsed in found for update in parsed.updates]


@pytest.mark.parametrize("delivery", recorded.deliveries(), ids=lambda delivery: delivery.event)
def test_every_recorded_delivery_is_read(delivery: Delivery) -> None:
    found = parse(delivery.body, session=recorded.SESSION)
    assert found.type == delivery.event
    kinds = {"message.ack": Ack, "session.status": AccountChange, "message.any": Echo}
    expected = kinds.get(delivery.event)
    if delivery.event == "message.any" and not delivery.payload["fromMe"]:
        expected = None
    assert [type(update) for update in found.updates] == ([expected] if expected else [])


def test_recorded_acks_have_ids_ranks_and_times() -> None:
    found = [
        update for item in recorded.deliveries("message.ack") for update in parse(item.body, session="default").updates
    ]
    assert [(ack.provider_id, ack.rank) for ack in found if isinstance(ack, Ack)] == [
        ("3EB0EDC04F8C5B54DC0F72", ranks.SENT),
        ("3EB065BB23C0EA8B2FAEC1", ranks.SENT),
        ("3EB0EDC04F8C5B54DC0F72", ranks.DELIVERED),
        ("3EB0ABAE488B0C40C8698D", ranks.DELIVERED),
        ("3EB065BB23C0EA8B2FAEC1", ranks.DELIVERED),
        ("3EB0EA70F5E963E042644E", ranks.READ),
        ("3EB0ACKLAB00000000001", ranks.PLAYED),
        ("3EB0ACKLAB00000000001", ranks.FAILED),
    ]
    assert all(ack.happened_at.year == 2026 for ack in found if isinstance(ack, Ack))


def test_recorded_echoes_carry_chat_and_text() -> None:
    found = [
        update for item in recorded.deliveries("message.any") for update in parse(item.body, session="default").updates
    ]
    echoes = [update for update in found if isinstance(update, Echo)]
    assert [(echo.address, echo.text) for echo in echoes] == [
        ("447700900123@c.us", "Hello from lab 👋"),
        ("120363000000000001@g.us", "x"),
        ("447700900123@c.us", ""),
        ("447700900123@c.us", ""),
        ("447700900123@c.us", ""),
        ("447700900123@c.us", "sent from the phone"),
    ]


def test_recorded_statuses_carry_the_account() -> None:
    found = [
        update
        for item in recorded.deliveries("session.status")
        for update in parse(item.body, session="default").updates
    ]
    changes = [update.payload for update in found if isinstance(update, AccountChange)]
    assert [change["status"] for change in changes] == ["STARTING", "STOPPED", "WORKING", "FAILED"]
    assert changes[0]["me"] is None
    assert changes[2]["me"] == {"id": "447700900001@c.us"}


def test_an_error_names_its_code_where_there_is_one() -> None:
    plain = {"id": "true_5511999990001@c.us_3EB0A", "fromMe": True, "ack": -1}
    assert updates("message.ack", plain)[0].code == "ack_error"
    coded = {**plain, "error": {"code": "463", "reason": "account_restricted"}}
    assert updates("message.ack", coded)[0].code == "ack_error_463"
    assert updates("message.ack", {**plain, "error": {"code": "\0é" * 99}})[0].code == "ack_error"


def test_acks_of_others_and_of_groups_members_say_nothing() -> None:
    # GOWS tells with fromMe=false that another device of ours has read.
    assert updates("message.ack", {"id": "false_5511999990001@c.us_3A1", "fromMe": False, "ack": 3}) == []
    assert updates("message.ack.group", {"id": "true_1@g.us_3EB0A", "fromMe": True, "ack": 3}) == []


@pytest.mark.parametrize(
    ("payload", "address"),
    [
        ({"id": "true_5511999990001@c.us_3EB0A", "fromMe": True, "from": "5511999990001@c.us"}, "5511999990001@c.us"),
        # WEBJS: from is we ourselves.
        (
            {"id": "3EB0A", "fromMe": True, "from": "5511888880000@c.us", "to": "5511999990001@c.us"},
            "5511999990001@c.us",
        ),
        ({"id": "true_5511999990001:3@s.whatsapp.net_3EB0A"}, "5511999990001@c.us"),
        ({"id": "true_11111@lid_3EB0A", "fromMe": True}, "11111@lid"),
        (
            {
                "id": "true_11111@lid_3EB0A",
                "fromMe": True,
                "_data": {"key": {"remoteJidAlt": "5511999990001@s.whatsapp.net"}},
            },
            "5511999990001@c.us",
        ),
    ],
)
def test_the_chat_of_an_own_message(payload: dict[str, Any], address: str) -> None:
    (echo,) = updates("message.any", {**payload, "body": "oi", "timestamp": 1795962745})
    assert (echo.provider_id, echo.address, echo.text) == ("3EB0A", address, "oi")
    assert echo.happened_at == datetime(2026, 11, 29, 14, 32, 25, tzinfo=UTC)


@pytest.mark.parametrize("chat", ["status@broadcast", "120363111111111111@newsletter", "123@broadcast"])
def test_own_stories_and_channels_are_no_messages(chat: str) -> None:
    assert updates("message.any", {"id": f"true_{chat}_3EB0A", "fromMe": True, "from": chat, "body": "oi"}) == []


@pytest.mark.parametrize(
    "event", ["message", "message.reaction", "message.edited", "message.revoked", "call.received", "new.thing"]
)
def test_what_this_version_does_not_use_is_kept_without_effect(event: str) -> None:
    found = parse(envelope(event, {"id": "true_5511999990001@c.us_3EB0A", "fromMe": True, "body": "oi", "ack": 3}))
    assert (found.type, list(found.updates)) == (event, [])


@pytest.mark.parametrize("payload", [None, [], "text", 7, {}, {"id": None}, {"id": "true_a_b"}, {"fromMe": True}])
@pytest.mark.parametrize("event", ["message.ack", "message.any", "session.status"])
def test_missing_parts_are_no_error(event: str, payload: Any) -> None:
    assert updates(event, payload) == []


def test_a_body_may_speak_for_its_own_session_alone() -> None:
    ack = {"id": "true_5511999990001@c.us_3EB0A", "fromMe": True, "ack": 3}
    for other in ("loja_2", "LOJA_1", "", None, 7):
        with pytest.raises(UnreadableEvent, match="another session"):
            parse(envelope("message.ack", ack, session=other))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"message"',
        b"{",
        b"NaN",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"event": 7, "session": "loja_1"}',
        b'{"event": "\\u0000 ", "session": "loja_1"}',
        b'{"n": ' + b"9" * 10_000 + b"}",
    ],
    ids=range(12),
)
def test_what_is_no_envelope_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableEvent):
        parse(body)


def test_bad_bytes_and_numbers_do_not_lose_the_event() -> None:
    body = (
        b'{"event": "message.any", "session": "loja_1", "timestamp": 1e999, "payload": {"x": NaN, "timestamp": -1,'
        b'"id": "true_5511999990001@c.us_3EB0A", "fromMe": true, "body": "a\xff\\ud83d\\u0000b"}}'
    )
    (echo,) = parse(body).updates
    assert isinstance(echo, Echo)
    assert echo.text == "a\ufffd\ufffd\ufffdb"
    assert echo.happened_at == NOW


ODD_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.sampled_from(["true_5511999990001@c.us_3EB0A", "5511999990001@c.us", "x" * 262_144, "\ud83d", "\0", "READ"]),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ODD_TEXT, inner, max_size=4),
    max_leaves=8,
)
KEYS = ("id", "fromMe", "from", "to", "body", "ack", "ackName", "timestamp", "status", "error", "_data", "key")
PAYLOADS = ODD | st.dictionaries(st.sampled_from(KEYS), ODD, max_size=len(KEYS))
EVENTS = ODD_TEXT | st.sampled_from(["message.any", "message.ack", "message.ack.group", "session.status", "message"])


@settings(max_examples=500, deadline=1000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(event=EVENTS | ODD, payload=PAYLOADS, timestamp=ODD, me=PAYLOADS)
def test_no_envelope_breaks_the_reader(event: Any, payload: Any, timestamp: Any, me: Any) -> None:
    body = json.dumps({"event": event, "session": "loja_1", "timestamp": timestamp, "payload": payload, "me": me})
    try:
        found = parse(body.encode("utf-8"))
    except UnreadableEvent:
        return
    # Whatever comes out must go into the database.
    said = [found.type]
    for update in found.updates:
        assert update.happened_at <= NOW + timedelta(minutes=5)
        if isinstance(update, Ack):
            said += [update.provider_id, update.code]
        elif isinstance(update, Echo):
            said += [update.provider_id, update.address, update.text]
        else:
            said.append(update.payload["status"])
    for text in said:
        assert "\0" not in text
        text.encode("utf-8")


@settings(max_examples=500)
@given(body=st.binary(max_size=300))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    with pytest.raises(UnreadableEvent):
        parse(body)


def test_a_large_body_is_read_in_time() -> None:
    payload = {"id": "true_5511999990001@c.us_3EB0A", "fromMe": True, "from": "5" * 262_144, "body": "a" * 5_000_000}
    started = time.monotonic()
    (echo,) = updates("message.any", payload)
    assert len(echo.text) == 5_000_000
    assert time.monotonic() - started < 1
