"""Reactions, edits, deletions and votes, over the API and from others: each an event of its own, never `message`."""

from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator.recorded import deliveries, shape

SENDER = "5511977770001"
CHAT = f"{SENDER}@c.us"
STORE = {"store": {"enabled": True}}


@pytest.fixture
def session(waha: Caller, receiver: Receiver) -> str:
    return waha.working_session(webhooks=[hook(receiver.url("/h"), "*")], noweb=STORE)


def sent_by_us(waha: Caller, session: str) -> str:
    return f"true_{CHAT}_{waha.send(session, CHAT, 'Promoção').json()['key']['id']}"


def payload_of(receiver: Receiver, event: str) -> dict[str, Any]:
    (arrival,) = receiver.wait_for("/h", 1, event=event)
    return dict(arrival.event["payload"])


def is_alone(receiver: Receiver, event: str, sent: int) -> bool:
    """No `message` came with it, and no more of `message.any` than was sent."""
    return not receiver.arrivals("/h", "message") and waiting.until(
        lambda: len(receiver.arrivals("/h", "message.any")) == sent
    )


def test_we_react_and_take_it_back(waha: Caller, receiver: Receiver, session: str) -> None:
    full = sent_by_us(waha, session)
    for emoji in ("👍", ""):
        answer = waha.put("/api/reaction", {"session": session, "messageId": full, "reaction": emoji})
        assert answer.status_code == 200
        assert answer.json()["message"]["reactionMessage"]["text"] == emoji
    told = [item.event["payload"] for item in receiver.wait_for("/h", 2, event="message.reaction")]
    assert {payload["reaction"]["text"] for payload in told} == {"👍", ""}
    assert all(payload["reaction"]["messageId"] == full and payload["fromMe"] for payload in told)
    assert is_alone(receiver, "message.reaction", 1)


def test_someone_reacts_to_what_we_sent(waha: Caller, receiver: Receiver, session: str) -> None:
    full = sent_by_us(waha, session)
    waha.control.inbound(session, sender=SENDER, type="reaction", target=full, text="🛑")
    payload = payload_of(receiver, "message.reaction")
    assert payload["reaction"] == {"text": "🛑", "messageId": full}
    assert payload["fromMe"] is False
    assert is_alone(receiver, "message.reaction", 1)


def test_we_edit(waha: Caller, receiver: Receiver, session: str) -> None:
    full = sent_by_us(waha, session)
    answer = waha.put(f"/api/{session}/chats/{CHAT}/messages/{full}", {"text": "Promoção!"})
    assert answer.status_code == 200
    payload = payload_of(receiver, "message.edited")
    recorded = [row["body"]["payload"] for row in deliveries() if row["event"] == "message.edited"]
    assert shape(payload) == shape(recorded[0])
    assert (payload["body"], payload["editedMessageId"]) == ("Promoção!", full.split("_")[2])
    looked_up = waha.get(f"/api/{session}/chats/{CHAT}/messages/{full}").json()
    assert (looked_up["id"], looked_up["body"]) == (full, "Promoção!")
    assert [entry["kind"] for entry in waha.control.book(session=session)] == ["text", "edit"]
    assert is_alone(receiver, "message.edited", 1)


def test_someone_edits(waha: Caller, receiver: Receiver, session: str) -> None:
    full = waha.control.inbound(session, sender=SENDER, text="ok", push_name="Ana")
    receiver.wait_for("/h", 1, event="message")
    waha.control.inbound(session, sender=SENDER, type="edit", target=full, text="PARAR", push_name="Ana")
    payload = payload_of(receiver, "message.edited")
    recorded = [row["body"]["payload"] for row in deliveries() if row["event"] == "message.edited"]
    assert shape(payload) == shape(recorded[1])
    assert (payload["body"], payload["editedMessageId"]) == ("PARAR", full.split("_")[2])
    assert waha.get(f"/api/{session}/chats/all/messages/{full}").json()["body"] == "PARAR"


@pytest.mark.parametrize("by_us", [True, False])
def test_a_message_is_taken_back_for_everyone(waha: Caller, receiver: Receiver, session: str, by_us: bool) -> None:
    if by_us:
        full = sent_by_us(waha, session)
        answer = waha.delete(f"/api/{session}/chats/{CHAT}/messages/{full}")
        assert answer.json()["message"]["protocolMessage"]["type"] == "REVOKE"
    else:
        full = waha.control.inbound(session, sender=SENDER, text="engano")
        waha.control.inbound(session, sender=SENDER, text=None, type="revoke", target=full)
    payload = payload_of(receiver, "message.revoked")
    assert (payload["before"], payload["revokedMessageId"]) == (None, full.split("_")[2])
    assert payload["after"]["fromMe"] is by_us


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_change_of_what_is_not_known_is_taken_and_a_bad_id_is_not(waha: Caller, session: str, method: str) -> None:
    headers = {"X-Api-Key": waha.key, "Content-Type": "application/json"}
    path = f"/api/{session}/chats/{CHAT}/messages"
    assert waha.ask(method, f"{path}/true_{CHAT}_3EB0NEVERSEEN", {"text": "x"}, headers).status_code == 200
    answer = waha.ask(method, f"{path}/3EB0NEVERSEEN", {"text": "x"}, headers)
    assert answer.status_code == 500
    assert "be in format false_11111111111@c.us_" in answer.json()["exception"]["message"]


@pytest.mark.parametrize("options", [["b"], ["a", "b"], []])
def test_someone_votes_and_takes_it_back(waha: Caller, receiver: Receiver, session: str, options: list[str]) -> None:
    poll = {"name": "Dia?", "options": ["a", "b"], "multipleAnswers": True}
    full = waha.post("/api/sendPoll", {"session": session, "chatId": CHAT, "poll": poll}).json()["id"]
    waha.control.inbound(session, sender=SENDER, text=None, type="vote", target=full, options=options)
    payload = payload_of(receiver, "poll.vote")
    assert payload["vote"]["selectedOptions"] == options
    assert payload["poll"]["id"] == full
    assert (payload["vote"]["from"], payload["vote"]["fromMe"]) == (CHAT, False)


def test_a_vote_that_cannot_be_read_is_told_as_such(waha: Caller, receiver: Receiver, session: str) -> None:
    waha.control.inbound(session, sender=SENDER, text=None, type="vote_failed", target=f"true_{CHAT}_3EB0POLL")
    payload = payload_of(receiver, "poll.vote.failed")
    assert payload["vote"]["selectedOptions"] == []
    assert receiver.arrivals("/h", "poll.vote") == []


@pytest.mark.parametrize(("engine", "event"), [("WEBJS", "message.waiting"), ("NOWEB", "message")])
def test_a_message_that_is_waited_for_has_an_event_on_webjs(
    waha: Caller, receiver: Receiver, session: str, engine: str, event: str
) -> None:
    waha.control.set_engine(session, engine)
    full = waha.control.inbound(session, sender=SENDER, text=None, type="waiting")
    assert payload_of(receiver, event)["id"] == full


@pytest.mark.parametrize("ack", [-1, 0, 1, 2, 3, 4, 9])
def test_any_ack_comes_on_command(waha: Caller, receiver: Receiver, session: str, ack: int) -> None:
    waha.control.fault("drop_acks", session=session)
    full = sent_by_us(waha, session)
    waha.control.ack(session, full, ack)
    payload = payload_of(receiver, "message.ack")
    assert (payload["id"], payload["ack"]) == (full, ack)
    assert payload["ackName"] == {-1: "ERROR", 0: "PENDING", 1: "SERVER", 2: "DEVICE", 3: "READ", 4: "PLAYED"}.get(
        ack, "UNKNOWN"
    )


def test_an_ack_may_be_of_a_message_that_nobody_knows(waha: Caller, receiver: Receiver, session: str) -> None:
    waha.control.ack(session, "3EB0FROMELSEWHERE", 2, chat_id=SENDER)
    payload = payload_of(receiver, "message.ack")
    assert payload["id"] == f"true_{CHAT}_3EB0FROMELSEWHERE"


def test_calls_and_presence_come_as_recorded(waha: Caller, receiver: Receiver, session: str) -> None:
    waha.control.call(session, sender=SENDER)
    waha.control.call(session, sender=SENDER, event="rejected")
    waha.control.presence(session, CHAT, "typing")
    rows = {row["event"]: row["body"]["payload"] for row in deliveries()}
    assert shape(payload_of(receiver, "presence.update")) == shape(rows["presence.update"])
    for event in ("call.received", "call.rejected"):
        payload = payload_of(receiver, event)
        assert set(payload) == set(rows[event])
        assert payload["_data"]["status"] == rows[event]["_data"]["status"]
