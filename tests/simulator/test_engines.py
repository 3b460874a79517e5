"""Shapes of answers and payloads, held against what WAHA sent."""

import json
from typing import Any

import pytest

from simulator import addresses, contents, engines
from simulator.engines import ENGINES, Me
from simulator.envelope import Envelope, environment
from simulator.messages import Message, MessageStore
from tests.simulator.recorded import deliveries, exchanges, shape

ME: Me = {"id": "447700900001@c.us", "pushName": "Lab Number", "lid": "199900000000001@lid"}


def sent(text: str = "hi", chat_id: str = "447700900123@c.us", quoted: Message | None = None) -> Message:
    return Message(
        bare="3EB0EDC04F8C5B54DC0F72",
        chat_id=chat_id,
        from_me=True,
        at=1795962745,
        content=contents.text(text, context=context_of(quoted)),
        quoted=quoted,
    )


def context_of(quoted: Message | None) -> dict[str, Any] | None:
    if quoted is None:
        return None
    author = addresses.to_engine(quoted.author(ME["id"]))
    return contents.context(stanza_id=quoted.bare, participant=author, quoted=quoted.data)


def received(**more: Any) -> Message:
    settings: dict[str, Any] = {
        "bare": "3A000000000000ABC001",
        "chat_id": "447700900123@c.us",
        "from_me": False,
        "at": 1795962898,
        "content": contents.typed("hello"),
        "source": "app",
        "ack": 2,
        "push_name": "Alice",
    }
    return Message(**(settings | more))


def recorded_payload(event: str, number: int = 0, **wanted: Any) -> dict[str, Any]:
    """The payload of a recorded delivery of this event with these values."""
    found = [
        row["body"]["payload"]
        for row in deliveries()
        if row["event"] == event and all(row["body"]["payload"].get(key) == value for key, value in wanted.items())
    ]
    return dict(found[number])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sendText_ok", sent()),
        ("sendText_group", sent(chat_id="120363000000000001@g.us")),
        ("sendText_lid_chatId", sent(chat_id="155500001111@lid")),
        ("sendText_reply", sent(quoted=sent())),
    ],
)
def test_noweb_answers_as_recorded(name: str, message: Message) -> None:
    answer = ENGINES["NOWEB"].answer(message, ME)
    assert shape(answer) == shape(exchanges()[name]["response"]["body"])
    assert list(answer) == list(exchanges()[name]["response"]["body"])


@pytest.mark.parametrize(
    ("message", "recorded"),
    [
        (sent(), recorded_payload("message.any", source="api", body="Hello from lab 👋")),
        (sent(chat_id="120363000000000001@g.us"), recorded_payload("message.any", body="x")),
        (received(), recorded_payload("message.any", body="hello, PN-addressed")),
        (
            received(chat_id="155500001111@lid", phone_jid="447700900123@s.whatsapp.net"),
            recorded_payload("message.any", body="hello, LID-addressed"),
        ),
        (received(content=contents.empty()), recorded_payload("message.any", number=-1, body=None)),
        (received(from_me=True, ack=1), recorded_payload("message.any", body="sent from the phone")),
        (
            received(
                chat_id="120363000000000001@g.us",
                participant="155500001111@lid",
                phone_jid="447700900123@s.whatsapp.net",
            ),
            recorded_payload("message.any", body="group hi"),
        ),
    ],
    ids=["sent", "sent to a group", "received", "from a lid", "empty", "from the phone", "in a group"],
)
def test_noweb_tells_of_messages_as_recorded(message: Message, recorded: dict[str, Any]) -> None:
    payload = engines.payload(ENGINES["NOWEB"], message, ME)
    assert shape(payload) == shape(recorded)


def test_noweb_tells_of_acks_as_recorded() -> None:
    payload = ENGINES["NOWEB"].ack_payload(sent(), 3, ME)
    recorded = recorded_payload("message.ack", ack=3)
    assert shape(payload) == shape(recorded)
    assert payload["from"] == "447700900123@c.us", "the chat, though it is our own message"


def test_noweb_stores_messages_as_recorded() -> None:
    message = sent("edited")
    message.ack = 2
    stored = engines.stored(ENGINES["NOWEB"], message, ME)
    assert shape(stored) == shape(exchanges()["chat_message_by_id"]["response"]["body"])
    assert stored["_data"]["status"] == 3


def test_a_quoted_message_stands_in_reply_to() -> None:
    payload = engines.payload(ENGINES["NOWEB"], received(quoted=sent("original outgoing")), ME)
    recorded = recorded_payload("message", body="STOP")
    assert set(payload["replyTo"]) == set(recorded["replyTo"])
    assert payload["replyTo"]["id"] == "3EB0EDC04F8C5B54DC0F72"


@pytest.mark.parametrize(
    ("engine", "bare"),
    [
        ("NOWEB", lambda answer: answer["key"]["id"]),
        ("GOWS", lambda answer: answer["id"].split("_")[2]),
        ("WEBJS", lambda answer: answer["id"]["id"]),
    ],
)
def test_each_engine_hides_the_id_elsewhere(engine: str, bare: Any) -> None:
    assert bare(ENGINES[engine].answer(sent(), ME)) == "3EB0EDC04F8C5B54DC0F72"


@pytest.mark.parametrize(("engine", "acks"), [("NOWEB", {-1, 1, 2, 3, 4}), ("GOWS", {-1, 2, 3, 4})])
def test_engines_differ_in_the_acks_they_report(engine: str, acks: set[int]) -> None:
    assert {ack for ack in range(-1, 5) if ENGINES[engine].reports(ack)} == acks


def test_webjs_names_the_real_sender_and_recipient() -> None:
    payload = engines.payload(ENGINES["WEBJS"], sent(), ME)
    assert (payload["from"], payload["to"]) == (ME["id"], "447700900123@c.us")
    payload = engines.payload(ENGINES["WEBJS"], received(), ME)
    assert (payload["from"], payload["to"]) == ("447700900123@c.us", ME["id"])


@pytest.mark.parametrize("engine", list(ENGINES))
def test_the_chat_is_the_second_part_of_the_id_on_every_engine(engine: str) -> None:
    for message in (sent(), received()):
        payload = engines.payload(ENGINES[engine], message, ME)
        assert payload["id"].split("_")[1] == "447700900123@c.us"


def test_an_envelope_is_built_byte_for_byte_as_waha_does() -> None:
    """Given the same ids and times, the very bytes that were signed."""
    for row in deliveries():
        body = row["body"]
        envelope = Envelope(
            session=body["session"],
            metadata=body["metadata"],
            environment=environment(version="2026.2.1", engine="NOWEB", tier="CORE"),
        )
        built = envelope.build(
            event_id=body["id"],
            timestamp_ms=body["timestamp"],
            event=body["event"],
            me=body["me"],
            payload=body["payload"],
        )
        assert built == row["raw"], row["event"]


def test_an_envelope_without_metadata_has_no_such_key() -> None:
    envelope = Envelope(session="a", metadata=None, environment=environment(version="1", engine="GOWS", tier="CORE"))
    built = envelope.build(event_id="evt_1", timestamp_ms=1, event="session.status", me=None, payload={})
    assert list(json.loads(built)) == [
        "id",
        "timestamp",
        "event",
        "session",
        "me",
        "payload",
        "engine",
        "environment",
    ]


def test_an_envelope_follows_a_changed_account() -> None:
    envelope = Envelope(session="a", metadata=None, environment=environment(version="1", engine="GOWS", tier="CORE"))
    me: Me = {"id": "1@c.us", "lid": "2@lid"}
    for name in (None, "Acme"):
        if name:
            me["pushName"] = name
        built = envelope.build(event_id="e", timestamp_ms=1, event="message", me=me, payload={})
        assert json.loads(built)["me"] == me


def test_a_store_finds_by_full_and_bare_id_in_the_right_chat_only() -> None:
    store = MessageStore()
    message = sent()
    store.add(message)
    assert store.find(message.full, chat_id="447700900123@c.us") is message
    assert store.find(message.bare, chat_id="447700900123@c.us") is message
    assert store.find(message.bare) is message
    assert store.find(message.bare, chat_id="447700900777@c.us") is None
    assert store.find("NOPE") is None
