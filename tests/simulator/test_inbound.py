"""What others write, and what the owner writes on the phone: every type, as events and to be looked up."""

import base64
from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator.recorded import deliveries, shape
from tests.simulator_client import SimulatorError

SENDER = "5511977770001"
CHAT = f"{SENDER}@c.us"
GROUP = "120363000000000001@g.us"
CARD = "BEGIN:VCARD\nVERSION:3.0\nFN:Jane\nEND:VCARD"
# type → its fields, and what of them is seen.
TYPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "image": ({"text": "olha"}, {"body": "olha", "hasMedia": True}),
    "video": ({"text": "olha"}, {"body": "olha", "hasMedia": True}),
    "video_note": ({"text": None}, {"body": None, "hasMedia": True}),
    "audio": ({"text": None}, {"body": None, "hasMedia": True}),
    "voice": ({"text": None}, {"body": None, "hasMedia": True}),
    "document": ({"text": None, "filename": "a.pdf"}, {"body": None, "hasMedia": True}),
    "sticker": ({"text": None}, {"body": None, "hasMedia": True}),
    "location": ({"text": None, "latitude": 51.5, "longitude": -0.12, "name": "London"}, {"body": None}),
    "contact": ({"text": None, "vcards": [CARD]}, {"vCards": [CARD]}),
    "poll": ({"text": None, "name": "Dia?", "options": ["a", "b"]}, {"body": None}),
    "empty": ({"text": None}, {"body": None, "hasMedia": False}),
    "view_once": ({"text": None}, {"body": None, "hasMedia": False}),
    "system": ({"text": None}, {"body": None, "hasMedia": False}),
    "unsupported": ({"text": None}, {"body": None, "hasMedia": False}),
}


def listening(waha: Caller, receiver: Receiver, *events: str, **config: Any) -> str:
    return waha.working_session(webhooks=[hook(receiver.url("/h"), *(events or ("message",)))], **config)


def recorded(body: str | None, number: int = 0, **wanted: Any) -> dict[str, Any]:
    found = [
        row["body"]["payload"]
        for row in deliveries()
        if row["event"] == "message"
        and row["body"]["payload"]["body"] == body
        and all(bool(row["body"]["payload"][key]) is value for key, value in wanted.items())
    ]
    return dict(found[number])


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("engine", ["NOWEB", "GOWS", "WEBJS"])
def test_every_type_arrives(waha: Caller, receiver: Receiver, kind: str, engine: str) -> None:
    name = listening(waha, receiver)
    waha.control.set_engine(name, engine)
    fields, seen = TYPES[kind]
    full = waha.control.inbound(name, sender=SENDER, type=kind, push_name="Ana", **fields)
    (arrival,) = receiver.wait_for("/h", 1)
    payload = arrival.event["payload"]
    assert payload["id"] == full
    assert {key: payload[key] for key in seen} == seen
    if payload["hasMedia"]:
        served = waha.get("/api/files/" + payload["media"]["url"].partition("/api/files/")[2])
        assert served.headers["Content-Type"] == payload["media"]["mimetype"]
        assert len(served.content) > 200


@pytest.mark.parametrize(
    ("fields", "as_recorded"),
    [
        ({"type": "image", "text": "pic", "media_error": True}, recorded("pic")),
        (
            {"type": "document", "text": None, "filename": "a.pdf", "media_error": True},
            recorded(None, hasMedia=True),
        ),
        (
            {"type": "location", "text": None, "latitude": 51.5, "longitude": -0.12, "name": "London"},
            recorded(None, location=True),
        ),
        ({"type": "contact", "text": None, "contacts": [{"name": "Jane", "phone": "44"}]}, recorded(None, vCards=True)),
        ({"type": "empty", "text": None}, recorded(None, -1, hasMedia=False, location=False, vCards=False)),
        ({"text": "hello", "chat_id": "120363111111111111@newsletter"}, recorded("channel post")),
        ({"text": "hello", "chat_id": GROUP, "lid": True}, recorded("group hi")),
    ],
    ids=["image", "document", "location", "contact", "empty", "channel", "group"],
)
def test_it_has_the_recorded_shape(
    waha: Caller, receiver: Receiver, fields: dict[str, Any], as_recorded: dict[str, Any]
) -> None:
    name = listening(waha, receiver)
    waha.control.inbound(name, sender=SENDER, push_name="Alice", **fields)
    (arrival,) = receiver.wait_for("/h", 1)
    assert shape(arrival.event["payload"]) == shape(as_recorded)


def test_a_file_is_what_the_sender_gave(waha: Caller, receiver: Receiver) -> None:
    """Even where its name and its type lie."""
    name = listening(waha, receiver)
    waha.control.inbound(
        name,
        sender=SENDER,
        text=None,
        type="document",
        data=base64.b64encode(b"<html>").decode(),
        mimetype="image/png",
        filename="../../etc/x.png",
    )
    (arrival,) = receiver.wait_for("/h", 1)
    media = arrival.event["payload"]["media"]
    assert (media["mimetype"], media["filename"]) == ("image/png", "../../etc/x.png")
    assert waha.get("/api/files/" + media["url"].partition("/api/files/")[2]).content == b"<html>"


def test_a_quote_names_the_quoted_by_its_bare_id(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver)
    sent = waha.send(name, CHAT, "Promoção").json()["key"]["id"]
    waha.control.inbound(name, sender=SENDER, text="SAIR", reply_to=f"true_{CHAT}_{sent}")
    (arrival,) = receiver.wait_for("/h", 1)
    payload = arrival.event["payload"]
    assert payload["replyTo"]["id"] == sent
    assert payload["replyTo"]["body"] == "Promoção"
    assert set(payload["replyTo"]) == set(recorded("STOP")["replyTo"])


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_hidden_id_tells_the_phone_or_not(waha: Caller, receiver: Receiver, is_hidden: bool) -> None:
    name = listening(waha, receiver)
    full = waha.control.inbound(name, sender=SENDER, text="oi", lid=True, hidden=is_hidden)
    (arrival,) = receiver.wait_for("/h", 1)
    lid = full.split("_")[1]
    assert ("remoteJidAlt" in arrival.event["payload"]["_data"]["key"]) is not is_hidden
    assert waha.get(f"/api/{name}/lids/{lid}").json() == {"lid": lid, "pn": None if is_hidden else CHAT}
    assert waha.control.learn_lid(name, SENDER) == lid
    assert waha.get(f"/api/{name}/lids/{lid}").json() == {"lid": lid, "pn": CHAT}, "learnt later"


@pytest.mark.parametrize("as_lid", [False, True])
def test_one_message_may_come_under_both_ids(waha: Caller, receiver: Receiver, as_lid: bool) -> None:
    name = listening(waha, receiver)
    waha.control.inbound(name, sender=SENDER, text="oi", lid=as_lid, twice=True)
    first, second = receiver.wait_for("/h", 2)
    ids = [arrival.event["payload"]["id"].split("_") for arrival in (first, second)]
    assert ids[0][2] == ids[1][2]
    assert {chat.partition("@")[2] for _, chat, _ in ids} == {"lid", "c.us"}
    assert first.event["id"] != second.event["id"]


def test_old_messages_come_with_their_old_time(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver)
    waha.control.inbound(name, sender=SENDER, text="PARAR", timestamp=1_700_000_000)
    (arrival,) = receiver.wait_for("/h", 1)
    assert arrival.event["payload"]["timestamp"] == 1_700_000_000


@pytest.mark.parametrize(
    ("switch", "chat_id"),
    [
        ("groups", GROUP),
        ("channels", "120363111111111111@newsletter"),
        ("status", "status@broadcast"),
        ("broadcast", "1712345678@broadcast"),
    ],
)
def test_chats_that_the_session_ignores_are_not_told_of(
    waha: Caller, receiver: Receiver, switch: str, chat_id: str
) -> None:
    deaf = listening(waha, receiver, ignore={switch: True})
    hearing = listening(waha, receiver, ignore={other: True for other in SWITCHES if other != switch})
    waha.control.inbound(deaf, sender=SENDER, text="oi", chat_id=chat_id)
    waha.control.inbound(deaf, sender=SENDER, text="direto")
    waha.control.inbound(hearing, sender=SENDER, text="oi", chat_id=chat_id)
    told = [arrival.event for arrival in receiver.wait_for("/h", 2)]
    assert sorted((event["session"] == deaf, event["payload"]["body"]) for event in told) == [
        (False, "oi"),
        (True, "direto"),
    ]


SWITCHES = ("groups", "channels", "status", "broadcast")


@pytest.mark.parametrize("kind", ["image", "voice", "location", "poll"])
def test_the_owner_sends_every_type_from_the_phone(waha: Caller, receiver: Receiver, kind: str) -> None:
    name = listening(waha, receiver, "message.any", "message.ack")
    fields, seen = TYPES[kind]
    waha.control.phone_sends(name, to=CHAT, type=kind, acks=True, **fields)
    (arrival,) = receiver.wait_for("/h", 1, event="message.any")
    payload = arrival.event["payload"]
    assert (payload["fromMe"], payload["source"]) == (True, "app")
    assert {key: payload[key] for key in seen} == seen
    (entry,) = waha.control.book(session=name, source="app")
    assert entry["kind"] == kind
    receiver.wait_for("/h", 3, event="message.ack")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"type": "hologram", "text": None}, "type"),
        ({"type": "text"}, "text"),
        ({"type": "text", "text": 5}, "text"),
        ({"type": "image", "text": None, "data": "%%%"}, "data"),
        ({"type": "location", "text": None, "latitude": "x", "longitude": 1}, "latitude"),
        ({"type": "contact", "text": None}, "contacts"),
        ({"type": "poll", "text": None, "name": "x", "options": [1]}, "options"),
        ({"type": "reaction", "text": "x"}, "target"),
        ({"text": "x", "lid": "1@lid"}, "lid"),
        ({"text": "x", "timestamp": "now"}, "timestamp"),
    ],
)
def test_a_command_that_makes_no_message_names_the_field(waha: Caller, fields: dict[str, Any], named: str) -> None:
    name = waha.working_session()
    with pytest.raises(SimulatorError, match=f"400 .*{named}"):
        waha.control.inbound(name, sender=SENDER, **{"text": None, **fields})


@pytest.mark.parametrize(
    "raw", [b'{"event":"message","payload":{"body":"\xff\xfe"}}', b'{"x":NaN}', b"", b'{"body":"\\ud83d"}']
)
def test_any_bytes_can_be_posted_and_are_signed(waha: Caller, receiver: Receiver, raw: bytes) -> None:
    name = listening(waha, receiver)
    assert waha.control.emit(name, "message", raw=raw) == 1
    assert waiting.until(lambda: len(receiver.arrivals("/h")) == 1)
    (arrival,) = receiver.arrivals("/h")
    assert arrival.body == raw
    assert len(arrival.headers["X-Webhook-Hmac"]) == 128
