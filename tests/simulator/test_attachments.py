"""Sending more than a text: what the caller, the phone and the webhooks see of it."""

import base64
import hashlib
from typing import Any

import pytest

from simulator.files import File, FileStore
from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import PICTURE, Receiver
from tests.simulator_client import SimulatorProcess

CHAT = "5511988880001@c.us"
FILE = {"mimetype": "image/png", "data": base64.b64encode(PICTURE).decode(), "filename": "oferta.png"}
GIVEN = "3EB0ABCDEF0123456789AC"
CALLS: dict[str, dict[str, Any]] = {
    "sendImage": {"file": FILE, "caption": "olha"},
    "sendFile": {"file": FILE, "caption": "olha"},
    "sendVoice": {"file": FILE, "convert": True},
    "sendVideo": {"file": FILE, "caption": "olha", "convert": False},
    "sendLocation": {"latitude": -23.5, "longitude": -46, "title": "Loja"},
    "sendContactVcard": {"contacts": [{"vcard": "BEGIN:VCARD\nFN:Ana\nEND:VCARD"}]},
    "sendPoll": {"poll": {"name": "Dia?", "options": ["a", "b"], "multipleAnswers": False}},
}
KINDS = {
    "sendImage": ("image", "olha", "imageMessage"),
    "sendFile": ("document", "olha", "documentMessage"),
    "sendVoice": ("voice", None, "audioMessage"),
    "sendVideo": ("video", "olha", "videoMessage"),
    "sendLocation": ("location", None, "locationMessage"),
    "sendContactVcard": ("contact", None, "contactMessage"),
    "sendPoll": ("poll", None, "pollCreationMessageV3"),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_it_stands_in_the_book_and_in_the_echo(waha: Caller, receiver: Receiver, call: str) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "message.any")])
    answer = waha.post(f"/api/{call}", {"session": name, "chatId": CHAT, "id": GIVEN, **CALLS[call]})
    assert answer.status_code == 201, answer.text
    kind, text, engine_name = KINDS[call]
    (entry,) = waha.control.book(session=name)
    assert (entry["kind"], entry["text"], entry["id"], entry["answered"]) == (kind, text, GIVEN, "201")
    (echo,) = receiver.wait_for("/h", 1)
    payload = echo.event["payload"]
    assert (payload["id"], payload["body"]) == (f"true_{CHAT}_{GIVEN}", text)
    assert engine_name in payload["_data"]["message"]


@pytest.mark.parametrize(
    ("engine", "bare"),
    [
        ("NOWEB", lambda body: body["key"]["id"]),
        ("GOWS", lambda body: body["id"].split("_")[2]),
        ("WEBJS", lambda body: body["id"]["id"]),
    ],
)
def test_each_engine_answers_in_its_shape(waha: Caller, engine: str, bare: Any) -> None:
    name = waha.working_session()
    waha.control.set_engine(name, engine)
    answer = waha.post("/api/sendImage", {"session": name, "chatId": CHAT, "file": FILE})
    (entry,) = waha.control.book(session=name)
    assert bare(answer.json()) == entry["id"]


@pytest.mark.parametrize("by_url", [False, True])
def test_the_phone_gets_the_very_file(waha: Caller, receiver: Receiver, file_server: str, by_url: bool) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "message.any")])
    file = {"mimetype": "image/png", "url": f"http://{file_server}/a.png"} if by_url else FILE
    waha.post("/api/sendImage", {"session": name, "chatId": CHAT, "file": file})
    (entry,) = waha.control.book(session=name)
    assert entry["file"]["sha256"] == hashlib.sha256(PICTURE).hexdigest()
    assert (entry["file"]["mimetype"], entry["file"]["size"]) == ("image/png", len(PICTURE))
    (echo,) = receiver.wait_for("/h", 1)
    media = echo.event["payload"]["media"]
    assert media["url"].startswith(f"http://localhost:3000/api/files/{name}/"), "the address inside the container"
    path = media["url"].removeprefix("http://localhost:3000")
    served = waha.get(path)
    assert (served.content, served.headers["Content-Type"]) == (PICTURE, "image/png")
    assert waha.ask("GET", path, None, {}).status_code == 401


def test_a_file_is_gone_after_a_while(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "message")])
    waha.control.inbound(name, sender="5511977770001", text=None, type="image")
    (arrival,) = receiver.wait_for("/h", 1)
    path = "/api/files/" + arrival.event["payload"]["media"]["url"].partition("/api/files/")[2]
    assert waha.get(path).status_code == 200
    assert waha.control.remove_files(name) == 1
    gone = waha.get(path)
    assert gone.status_code == 404
    assert gone.json()["error"]["key"] == "FILE_NOT_FOUND"


def test_files_live_as_long_as_told() -> None:
    with SimulatorProcess(time_scale=0.02, options=("--files-lifetime", "0.2")) as simulator:
        caller = Caller(simulator)
        name = caller.working_session(noweb={"store": {"enabled": True}})
        full = simulator.control.inbound(name, sender="5511977770001", text=None, type="image")
        media = caller.get(f"/api/{name}/chats/all/messages/{full}").json()["media"]
        path = "/api/files/" + media["url"].partition("/api/files/")[2]
        assert caller.get(path).status_code == 200
        assert waiting.until(lambda: caller.get(path).status_code == 404)
        caller.close()


@pytest.mark.parametrize(
    ("file", "message", "code"),
    [
        ({"url": "http://127.0.0.1:9/x.png"}, "connect ECONNREFUSED 127.0.0.1:9", "ECONNREFUSED"),
        ({"url": "http://{files}/gone"}, "Request failed with status code 404", "ERR_BAD_REQUEST"),
        ({"url": "no url"}, None, "ERR_INVALID_URL"),
    ],
)
def test_a_file_that_cannot_be_fetched_is_a_500(
    waha: Caller, file_server: str, file: dict[str, str], message: str | None, code: str
) -> None:
    name = waha.working_session()
    given = {"mimetype": "image/png", "url": file["url"].replace("{files}", file_server)}
    answer = waha.post("/api/sendImage", {"session": name, "chatId": CHAT, "file": given})
    assert answer.status_code == 500
    exception = answer.json()["exception"]
    assert exception["code"] == code
    assert message is None or exception["message"] == message
    assert waha.control.book(session=name) == []


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("sendImage", {"caption": "x"}),
        ("sendImage", {"file": "x"}),
        ("sendLocation", {"latitude": "north", "longitude": 1}),
        ("sendLocation", {"longitude": 1}),
        ("sendContactVcard", {"contacts": "Ana"}),
        ("sendPoll", {"poll": {"name": "x"}}),
        ("sendPoll", {}),
        ("forwardMessage", {}),
    ],
)
def test_what_is_missing_is_no_400(waha: Caller, call: str, body: dict[str, Any]) -> None:
    """Send handlers check nothing: it fails further inside, with the request in the answer."""
    name = waha.working_session()
    answer = waha.post(f"/api/{call}", {"session": name, "chatId": CHAT, **body})
    assert answer.status_code == (422 if call == "forwardMessage" else 500)
    assert waha.control.book(session=name) == []


def test_base64_is_read_as_node_does(waha: Caller) -> None:
    name = waha.working_session()
    spoiled = "\n".join(FILE["data"][start : start + 60] for start in range(0, len(FILE["data"]), 60)).rstrip("=")
    body = {"session": name, "chatId": CHAT, "file": {"mimetype": "image/png", "data": spoiled}}
    assert waha.post("/api/sendImage", body).status_code == 201
    (entry,) = waha.control.book(session=name)
    assert entry["file"]["sha256"] == hashlib.sha256(PICTURE).hexdigest()


def test_fields_of_a_contact_become_a_card(waha: Caller) -> None:
    name = waha.working_session()
    contact = {"fullName": "Ana", "organization": "Loja", "phoneNumber": "+55 11 9", "whatsappId": "55119"}
    answer = waha.post("/api/sendContactVcard", {"session": name, "chatId": CHAT, "contacts": [contact, contact]})
    cards = answer.json()["message"]["contactsArrayMessage"]["contacts"]
    assert cards[0]["vcard"] == (
        "BEGIN:VCARD\nVERSION:3.0\nFN:Ana\nORG:Loja;\nTEL;type=CELL;type=VOICE;waid=55119:+55 11 9\nEND:VCARD"
    )
    assert len(cards) == 2


def test_a_message_is_passed_on(waha: Caller) -> None:
    name = waha.working_session()
    known = waha.control.inbound(name, sender="5511977770001", text="passe adiante")
    answer = waha.post("/api/forwardMessage", {"session": name, "chatId": CHAT, "messageId": known})
    assert answer.status_code == 201
    (entry,) = waha.control.book(session=name)
    assert (entry["chat_id"], entry["text"]) == (CHAT, "passe adiante")
    assert entry["id"] != known


def test_a_picture_is_passed_on_with_its_file(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "message.any")])
    sent = waha.post("/api/sendImage", {"session": name, "chatId": CHAT, "file": FILE}).json()["key"]["id"]
    waha.post("/api/forwardMessage", {"session": name, "chatId": "5511988880002@c.us", "messageId": sent})
    urls = [arrival.event["payload"]["media"]["url"] for arrival in receiver.wait_for("/h", 2)]
    assert len(set(urls)) == 2
    for url in urls:
        assert waha.get("/api/files/" + url.partition("/api/files/")[2]).content == PICTURE


def test_what_goes_to_thousands_is_held_once() -> None:
    store = FileStore(base_url="http://waha", lifetime=0)
    for number in range(1000):
        store.put("a", f"3EB0{number}", File(bytes([1]) * 1000, "image/png"))
    assert store.bytes_held == 1000
    found = store.get("a", "3EB0999.png")
    assert found is not None
    assert len(found.data) == 1000
    assert store.remove("a") == 1000
    assert store.bytes_held == 0


def test_a_caption_may_quote(waha: Caller) -> None:
    name = waha.working_session()
    first = waha.control.inbound(name, sender="5511988880001", text="tem foto?")
    body = {"session": name, "chatId": CHAT, "file": FILE, "caption": "tem", "reply_to": first}
    context = waha.post("/api/sendImage", body).json()["message"]["imageMessage"]["contextInfo"]
    assert context["quotedMessage"] == {"conversation": "tem foto?"}
    (entry,) = waha.control.book(session=name)
    assert entry["reply_to"] == first.split("_")[2]


def test_conversions_give_what_a_phone_plays(waha: Caller) -> None:
    name = waha.working_session()
    voice = waha.post(f"/api/{name}/media/convert/voice", {"data": FILE["data"]})
    assert voice.json()["mimetype"] == "audio/ogg; codecs=opus"
    assert base64.b64decode(voice.json()["data"]).startswith(b"OggS")
    headers = {"X-Api-Key": waha.key, "Content-Type": "application/json"}
    video = waha.ask("POST", f"/api/{name}/media/convert/video", {"data": FILE["data"]}, headers)
    assert video.content[4:8] == b"ftyp"
