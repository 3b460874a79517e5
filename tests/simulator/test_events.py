"""Each event that was recorded comes from the simulator, too, in the recorded shape."""

from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator.recorded import deliveries, shape

SENDER, GROUP = "5511977770001", "120363000000000001@g.us"
CHAT = f"{SENDER}@c.us"
# Events of labels: WhatsApp Business alone has them; a test sends them as they were recorded.
LABELS = {"label.upsert", "label.deleted", "label.chat.added"}
EVENTS = sorted({row["event"] for row in deliveries()} - LABELS)


@pytest.fixture
def told(waha: Caller, receiver: Receiver) -> dict[str, list[Any]]:
    """The life of a session, by event: paired, written to, answered, called, put into a group, unlinked, stopped."""
    hooks = [hook(receiver.url("/h"), "*", "state.change", "engine.event")]
    name = waha.working_session(webhooks=hooks, noweb={"store": {"enabled": True}})
    control = waha.control
    full = f"true_{CHAT}_{waha.send(name, CHAT, 'olá').json()['key']['id']}"
    waha.put(f"/api/{name}/chats/{CHAT}/messages/{full}", {"text": "oi"})
    control.inbound(name, sender=SENDER, text="oi", push_name="Ana")
    control.group(name, GROUP, subject="Clientes", members=[{"phone": SENDER, "lid": True}], admin=True)
    control.group_members(name, GROUP, add=["5511977770002"])
    waha.send(name, GROUP, "a todos")
    control.call(name, sender=SENDER)
    control.call(name, sender=SENDER, event="rejected")
    control.presence(name, CHAT, "typing")
    receiver.wait_for("/h", 1, event="message.ack.group")
    waha.post(f"/api/sessions/{name}/stop")
    assert waiting.until(lambda: set(EVENTS) <= {item.event["event"] for item in receiver.arrivals("/h")})
    assert waiting.until(lambda: control.state()["webhooks"]["pending"] == 0)
    found: dict[str, list[Any]] = {}
    for item in sorted(receiver.arrivals("/h"), key=lambda arrival: arrival.headers["X-Webhook-Request-Id"]):
        found.setdefault(item.event["event"], []).append(item.event["payload"])
    return found


def test_every_recorded_event_comes_in_a_recorded_shape(told: dict[str, list[Any]]) -> None:
    for event in EVENTS:
        recorded = [shape(row["body"]["payload"]) for row in deliveries() if row["event"] == event]
        assert any(alike(shape(payload), one) for payload in told[event] for one in recorded), event


def alike(found: Any, recorded: Any) -> bool:
    """The same keys and types; what an engine's own object (`_data`, a group) has besides is its matter."""
    if not isinstance(found, dict) or not isinstance(recorded, dict):
        return bool(found == recorded)
    return set(recorded) <= set(found) and all(
        alike(found[key], value) for key, value in recorded.items() if key not in ("_data", "participants")
    )


def test_a_connection_tells_its_life_in_the_recorded_words(told: dict[str, list[Any]]) -> None:
    recorded = [row["body"]["payload"] for row in deliveries() if row["event"] == "state.change"]
    steps = [shape(payload) for payload in told["state.change"]]
    for payload in recorded:
        assert shape(payload) in steps, payload
    assert [next(iter(step)) for step in steps] == ["qr", "isNewLogin", "connection", "isOnline", "connection"]
    closed = next(payload for payload in recorded if payload.get("connection") == "close")
    assert told["state.change"][-1]["lastDisconnect"]["error"] == closed["lastDisconnect"]["error"]


def test_engine_events_are_for_who_asks_for_them_by_name(waha: Caller, receiver: Receiver) -> None:
    waha.working_session(webhooks=[hook(receiver.url("/h"), "*")])
    receiver.wait_for("/h", 3, event="session.status")
    assert {item.event["event"] for item in receiver.arrivals("/h")} == {"session.status"}


@pytest.mark.parametrize("event", sorted(LABELS))
def test_any_event_can_be_sent_as_recorded(waha: Caller, receiver: Receiver, event: str) -> None:
    payload = next(row["body"]["payload"] for row in deliveries() if row["event"] == event)
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), event)])
    assert waha.control.emit(name, event, payload) == 1
    (arrival,) = receiver.wait_for("/h", 1)
    assert arrival.event["payload"] == payload
