"""Sending a text: what the caller, the phone and the webhooks see."""

import time
from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Arrival, Receiver
from tests.simulator_client import SimulatorProcess

GIVEN = "3EB0ABCDEF0123456789AB"
CHAT = "5511988880001@c.us"


def listening(waha: Caller, receiver: Receiver, **config: Any) -> str:
    """A working session whose messages and acks arrive at /h."""
    return waha.working_session(webhooks=[hook(receiver.url("/h"), "message", "message.any", "message.ack")], **config)


def acks(receiver: Receiver) -> list[int]:
    return [arrival.event["payload"]["ack"] for arrival in in_order(receiver)]


def in_order(receiver: Receiver) -> list[Arrival]:
    """Acks as they were posted: posts overtake each other, their request ids only grow."""
    return sorted(receiver.arrivals("/h", "message.ack"), key=lambda arrival: arrival.headers["X-Webhook-Request-Id"])


def test_a_text_stands_in_the_book_with_the_moment_of_acting(waha: Caller) -> None:
    name = waha.working_session()
    before = time.time()
    answer = waha.send(name, CHAT, "olá 👋", id=GIVEN)
    after = time.time()
    assert answer.json()["key"]["id"] == GIVEN
    (entry,) = waha.control.book(session=name)
    assert (entry["chat_id"], entry["text"], entry["id"]) == (CHAT, "olá 👋", GIVEN)
    assert (entry["id_given"], entry["repeated"], entry["answered"]) == (True, False, "201")
    assert before <= entry["requested_at"] <= entry["acted_at"] <= entry["answered_at"] <= after


def test_the_echo_and_three_acks_follow(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver)
    waha.send(name, CHAT, "olá", id=GIVEN)
    assert waiting.until(lambda: acks(receiver) == [1, 2, 3])
    (echo,) = receiver.arrivals("/h", "message.any")
    payload = echo.event["payload"]
    assert payload["id"] == f"true_{CHAT}_{GIVEN}"
    assert (payload["from"], payload["fromMe"], payload["source"], payload["body"]) == (
        CHAT,
        True,
        "api",
        "olá",
    )
    assert receiver.arrivals("/h", "message") == [], "own messages come as message.any only"


@pytest.mark.parametrize("order", ["before", "after", "none", "late"])
def test_an_echo_comes_when_told(waha: Caller, receiver: Receiver, order: str) -> None:
    name = listening(waha, receiver)
    waha.control.fault("echo", order=order, seconds=0.3, session=name)
    waha.send(name, CHAT)
    answered = time.monotonic()
    assert waiting.until(lambda: acks(receiver) == [1, 2, 3])
    if order == "none":
        assert receiver.arrivals("/h", "message.any") == []
        return
    (echo,) = receiver.wait_for("/h", 1, event="message.any")
    assert (echo.at < answered) is (order == "before")
    assert (echo.at > answered + 0.2) is (order == "late")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kind": "drop_acks"}, []),
        ({"kind": "drop_acks", "acks": [2]}, [1, 3]),
        ({"kind": "reverse_acks"}, [3, 2, 1]),
        ({"kind": "duplicate_acks"}, [1, 1, 2, 2, 3, 3]),
        ({"kind": "ack_error"}, [-1]),
        ({"kind": "ack_error", "after": 1}, [1, -1]),
        ({"kind": "late_acks", "seconds": 0.2}, [1, 2, 3]),
    ],
)
def test_acks_go_wrong_when_told(waha: Caller, receiver: Receiver, fault: dict[str, Any], expected: list[int]) -> None:
    name = listening(waha, receiver)
    waha.control.fault(**fault, session=name)
    waha.send(name, CHAT)
    waha.control.clear_faults()
    waha.send(name, "5511988880002@c.us")
    assert waiting.until(lambda: len(acks(receiver)) >= 3 + len(expected))
    found = [arrival.event["payload"] for arrival in in_order(receiver)]
    assert [payload["ack"] for payload in found if payload["from"] == CHAT] == expected


def test_a_number_that_is_not_on_whatsapp_is_taken_and_never_delivered(waha: Caller, receiver: Receiver) -> None:
    waha.control.number("5511988889999", exists=False)
    name = listening(waha, receiver)
    assert waha.send(name, "5511988889999@c.us").status_code == 201
    waha.send(name, CHAT)
    assert waiting.until(lambda: acks(receiver).count(3) == 1)
    assert sorted(acks(receiver)) == [1, 1, 2, 3]


def test_acks_that_fall_into_an_outage_come_after_it(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver)
    waha.control.fault("late_acks", seconds=0.1, session=name)
    waha.send(name, CHAT)
    waha.control.drop(name, stay=True)
    waha.control.fault("late_acks", seconds=0.0, session=name)
    assert not waiting.until(lambda: acks(receiver) != [], timeout=0.4)
    waha.control.restore(name)
    assert waiting.until(lambda: sorted(acks(receiver)) == [1, 2, 3])


@pytest.mark.parametrize("version", ["2026.4.2", "2026.4.3"])
def test_an_id_is_taken_since_2026_4_3_only(version: str) -> None:
    with SimulatorProcess(time_scale=0.02, version=version, options=("--tier", "PLUS")) as simulator:
        caller = Caller(simulator)
        name = caller.working_session()
        answered = caller.send(name, id=GIVEN).json()["key"]["id"]
        (entry,) = simulator.control.book()
        takes = version == "2026.4.3"
        assert (answered == GIVEN) is takes
        assert (entry["id"] == GIVEN) is takes
        assert entry["id_given"] is takes
        caller.close()


def test_the_same_id_sent_twice_reaches_the_phone_twice_and_is_marked(waha: Caller) -> None:
    name = waha.working_session()
    for _ in range(2):
        assert waha.send(name, CHAT, id=GIVEN).status_code == 201
    assert [entry["repeated"] for entry in waha.control.book(session=name)] == [False, True]


@pytest.mark.parametrize(
    ("engine", "bare", "is_taken"),
    [
        ("NOWEB", lambda body: body["key"]["id"], True),
        ("GOWS", lambda body: body["id"].split("_")[2], True),
        ("WEBJS", lambda body: body["id"]["_serialized"].split("_")[2], False),
    ],
)
def test_each_engine_answers_in_its_shape(waha: Caller, engine: str, bare: Any, is_taken: bool) -> None:
    name = waha.working_session()
    waha.control.set_engine(name, engine)
    answered = bare(waha.send(name, id=GIVEN).json())
    (entry,) = waha.control.book(session=name)
    assert answered == entry["id"]
    assert (answered == GIVEN) is is_taken


def test_a_new_id_can_be_drawn_and_used(waha: Caller) -> None:
    name = waha.working_session()
    drawn = waha.get(f"/api/{name}/new-message-id").json()["id"]
    assert waha.send(name, id=drawn).json()["key"]["id"] == drawn


def test_a_sent_message_is_looked_up_with_its_ack(waha: Caller) -> None:
    name = waha.working_session(noweb={"store": {"enabled": True}})
    bare = waha.send(name, CHAT).json()["key"]["id"]
    path = f"/api/{name}/chats/{CHAT}/messages/{bare}"
    assert waiting.until(lambda: waha.get(path).json()["ack"] == 3)
    assert waha.get(f"/api/{name}/chats/all/messages/true_{CHAT}_{bare}").json()["ackName"] == "READ"


def test_a_look_up_is_refused_where_noweb_keeps_nothing(waha: Caller) -> None:
    name = waha.working_session()
    answer = waha.get(f"/api/{name}/chats/{CHAT}/messages/3EB0")
    assert answer.status_code == 400
    assert "config.noweb.store.enabled" in answer.json()["message"]


@pytest.mark.parametrize("as_lid", [False, True])
def test_someone_writes(waha: Caller, receiver: Receiver, as_lid: bool) -> None:
    name = listening(waha, receiver)
    full = waha.control.inbound(name, sender="5511977770001", text="SAIR", lid=as_lid, push_name="Ana")
    (message,) = receiver.wait_for("/h", 1, event="message")
    (any_message,) = receiver.wait_for("/h", 1, event="message.any")
    assert message.event["id"] == any_message.event["id"], "one event id for both, as measured"
    payload = message.event["payload"]
    assert payload == any_message.event["payload"]
    assert (payload["id"], payload["body"], payload["fromMe"]) == (full, "SAIR", False)
    assert payload["from"].endswith("@lid") is as_lid
    phone = payload["_data"]["key"].get("remoteJidAlt")
    assert phone == ("5511977770001@s.whatsapp.net" if as_lid else None)


def test_the_owner_types_on_his_phone(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver)
    waha.control.phone_sends(name, to="5511977770001", text="eu mesmo")
    (arrival,) = receiver.wait_for("/h", 1, event="message.any")
    payload = arrival.event["payload"]
    assert (payload["fromMe"], payload["source"], payload["body"]) == (True, "app", "eu mesmo")
    assert waha.control.book(session=name) == []
    assert [entry["text"] for entry in waha.control.book(session=name, source="all")] == ["eu mesmo"]


def test_a_registered_number_is_found_under_its_own_form(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.number("5511966660001", chat_id="551166660001@c.us")
    answer = waha.get(f"/api/contacts/check-exists?phone=5511966660001&session={name}")
    assert answer.json() == {"numberExists": True, "chatId": "551166660001@c.us"}
    waha.control.number("5511966660002", exists=False)
    waha.control.set_engine(name, "GOWS")
    answer = waha.get(f"/api/contacts/check-exists?phone=5511966660002&session={name}")
    assert answer.json() == {"numberExists": False, "chatId": None}


def test_courtesies_are_taken(waha: Caller) -> None:
    name = waha.working_session()
    body = {"session": name, "chatId": CHAT}
    assert waha.post("/api/startTyping", body).json() == {"result": True}
    assert waha.post("/api/stopTyping", body).json() == {"result": True}
    assert waha.post("/api/sendSeen", body).content == b""
