"""What can be asked of a session afterwards: its messages, chats, contacts and hidden ids."""

from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller

ANA, BRUNO = "5511977770001", "5511977770002"
STORE = {"store": {"enabled": True}}


@pytest.fixture
def session(waha: Caller) -> str:
    """Two chats: Ana wrote at 1000, 2000 and 3000; Bruno got one from us."""
    name = waha.working_session(noweb=STORE)
    for at in (1000, 2000, 3000):
        waha.control.inbound(name, sender=ANA, text=f"às {at}", push_name="Ana", timestamp=at)
    waha.send(name, f"{BRUNO}@c.us", "para Bruno")
    return name


def bodies(waha: Caller, session: str, chat: str, query: str = "") -> list[Any]:
    answer = waha.get(f"/api/{session}/chats/{chat}/messages?downloadMedia=false&{query}")
    assert answer.status_code == 200, answer.text
    return [row["body"] for row in answer.json()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["às 3000", "às 2000", "às 1000"]),
        ("limit=2", ["às 3000", "às 2000"]),
        ("limit=2&offset=1", ["às 2000", "às 1000"]),
        ("sortOrder=asc&limit=1", ["às 1000"]),
        ("filter.timestamp.gte=2000", ["às 3000", "às 2000"]),
        ("filter.timestamp.lte=2000", ["às 2000", "às 1000"]),
        ("filter.fromMe=true", []),
        ("filter.ack=DEVICE&limit=1", ["às 3000"]),
    ],
)
def test_messages_of_a_chat_are_listed_the_newest_first(
    waha: Caller, session: str, query: str, expected: list[str]
) -> None:
    assert bodies(waha, session, f"{ANA}@c.us", query) == expected


def test_all_chats_are_read_back_after_an_outage(waha: Caller, session: str) -> None:
    assert bodies(waha, session, "all", "filter.timestamp.gte=2000&limit=100") == ["para Bruno", "às 3000", "às 2000"]
    assert bodies(waha, session, "all", "filter.fromMe=true") == ["para Bruno"]


def test_a_number_that_is_none_is_refused_by_name(waha: Caller, session: str) -> None:
    answer = waha.get(f"/api/{session}/chats/all/messages?limit=ten")
    assert answer.status_code == 400
    assert "limit" in answer.json()["message"][0]


def test_a_chat_is_found_under_both_ids_when_asked_to_merge(waha: Caller) -> None:
    name = waha.working_session(noweb=STORE)
    full = waha.control.inbound(name, sender=ANA, text="escondida", lid=True)
    waha.control.inbound(name, sender=ANA, text="à vista")
    lid = full.split("_")[1]
    assert bodies(waha, name, lid) == ["escondida"]
    assert bodies(waha, name, f"{ANA}@c.us") == ["à vista"]
    for chat in (lid, f"{ANA}@c.us"):
        assert bodies(waha, name, chat, "merge=true") == ["à vista", "escondida"]


@pytest.mark.parametrize(
    "path",
    ["/api/{name}/chats/all/messages", "/api/{name}/chats", "/api/{name}/chats/overview"],
)
def test_noweb_without_a_store_has_nothing_to_list(waha: Caller, path: str) -> None:
    name = waha.working_session()
    assert waha.get(path.format(name=name)).status_code == 400
    waha.control.set_engine(name, "GOWS")
    assert waha.get(path.format(name=name)).status_code == 200


def test_chats_are_listed_with_their_last_message(waha: Caller, session: str) -> None:
    rows = waha.get(f"/api/{session}/chats/overview").json()
    assert [(row["id"], row["name"], row["lastMessage"]["body"]) for row in rows] == [
        (f"{BRUNO}@c.us", None, "para Bruno"),
        (f"{ANA}@c.us", "Ana", "às 3000"),
    ]
    (chosen,) = waha.get(f"/api/{session}/chats/overview?ids={ANA}@c.us").json()
    assert chosen["id"] == f"{ANA}@c.us"
    body = {"pagination": {"limit": 1, "offset": 1}}
    assert [row["id"] for row in waha.post(f"/api/{session}/chats/overview", body).json()] == [f"{ANA}@c.us"]
    assert [row["id"] for row in waha.get(f"/api/{session}/chats?limit=1").json()] == [f"{BRUNO}@s.whatsapp.net"]


def test_who_wrote_is_in_the_address_book(waha: Caller, session: str) -> None:
    (ana,) = waha.get(f"/api/contacts/all?session={session}").json()
    assert ana == {"id": f"{ANA}@c.us", "lid": None, "name": None, "pushname": "Ana"}
    saved = waha.put(f"/api/{session}/contacts/{ANA}@c.us", {"firstName": "Ana", "lastName": "Silva"})
    assert saved.json() == {"success": True}
    assert waha.get(f"/api/{session}/contacts/{ANA}@c.us").json()["name"] == "Ana Silva"
    assert waha.get(f"/api/contacts?contactId={BRUNO}&session={session}").content == b""


def test_what_whatsapp_knows_of_a_number(waha: Caller, session: str) -> None:
    phone = "5511966660007"
    waha.control.number(phone, picture="https://pps.example/a.jpg", about="Oi")
    waha.control.set_engine(session, "GOWS")
    query = f"contactId={phone}@c.us&session={session}"
    assert waha.get(f"/api/contacts/profile-picture?{query}").json() == {
        "profilePictureURL": "https://pps.example/a.jpg"
    }
    assert waha.get(f"/api/contacts/about?{query}").json() == {"about": "Oi"}
    assert waha.get(f"/api/{session}/chats/{phone}@c.us/picture").json() == {"url": "https://pps.example/a.jpg"}


def test_hidden_ids_are_listed_counted_and_forgotten(waha: Caller, session: str) -> None:
    lids = [waha.control.learn_lid(session, phone) for phone in (ANA, BRUNO)]
    assert waha.get(f"/api/{session}/lids").json() == [
        {"lid": lids[0], "pn": f"{ANA}@c.us"},
        {"lid": lids[1], "pn": f"{BRUNO}@c.us"},
    ]
    assert waha.get(f"/api/{session}/lids?limit=1&offset=1").json() == [{"lid": lids[1], "pn": f"{BRUNO}@c.us"}]
    assert waha.get(f"/api/{session}/lids/count").json() == {"count": 2}
    assert waha.get(f"/api/{session}/lids/pn/{ANA}").json() == {"lid": lids[0], "pn": f"{ANA}@c.us"}


def test_reading_a_chat_tells_its_writer(waha: Caller, session: str) -> None:
    unread = waha.post(f"/api/{session}/chats/{ANA}@c.us/messages/read").json()["ids"]
    assert len(unread) == 3
    assert waha.post(f"/api/{session}/chats/{ANA}@c.us/messages/read").json()["ids"] == []
    assert waha.get(f"/api/{session}/chats/all/messages/{unread[0]}").json()["ackName"] == "READ"
    waha.control.inbound(session, sender=ANA, text="mais uma")
    waha.post("/api/sendSeen", {"session": session, "chatId": f"{ANA}@c.us"})
    assert waha.post(f"/api/{session}/chats/{ANA}@c.us/messages/read").json()["ids"] == []


def test_deprecated_calls_still_work(waha: Caller, session: str) -> None:
    rows = waha.get(f"/api/messages?chatId={ANA}&session={session}&limit=1").json()
    assert [row["body"] for row in rows] == ["às 3000"]
    answer = waha.get(f"/api/sendText?phone={BRUNO}&text=oi&session={session}")
    assert answer.status_code == 200
    assert waiting.until(lambda: waha.control.book(session=session)[-1]["text"] == "oi")
    assert waha.get(f"/api/checkNumberStatus?phone={ANA}&session={session}").json()["numberExists"] is True
    assert waha.post("/api/sessions/stop", {"name": session}).status_code == 201
    assert waha.get(f"/api/sessions/{session}").json()["status"] == "STOPPED"
    assert waha.post("/api/sessions/logout", {"name": session}).status_code == 201
    assert waha.get(f"/api/sessions/{session}").status_code == 404
