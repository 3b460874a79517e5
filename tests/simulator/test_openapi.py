"""Every call the simulator knows, held against WAHA's own description: the request, the status, the answer."""

from typing import Any

import pytest

from simulator.app import ROUTES
from simulator.engines import ENGINES
from tests import waiting
from tests.simulator import openapi
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver

CHAT = "5511988880001@c.us"
GROUP = "120363000000000001@g.us"
LID = "199900000000077@lid"
# Not in the document: files were never in it, the others came with 2026.8.1.
UNDESCRIBED = {"/api/files/{session}/{name}", "/api/{session}/timelock", "/api/{session}/capping"}
FILE = {"mimetype": "image/png", "data": "iVBORw0KGgo=", "filename": "a.png"}
STORE = {"enabled": True, "fullSync": False}
BODIES: dict[str, Any] = {
    "/api/sendText": {"session": "{session}", "chatId": CHAT, "text": "oi", "linkPreview": True},
    "/api/startTyping": {"session": "{session}", "chatId": CHAT},
    "/api/stopTyping": {"session": "{session}", "chatId": CHAT},
    "/api/sendSeen": {"session": "{session}", "chatId": CHAT, "messageIds": ["{message_id}"]},
    "/api/sendImage": {"session": "{session}", "chatId": CHAT, "file": FILE, "caption": "olha"},
    "/api/sendFile": {"session": "{session}", "chatId": CHAT, "file": FILE, "caption": "olha"},
    "/api/sendVoice": {"session": "{session}", "chatId": CHAT, "file": FILE, "convert": True},
    "/api/sendVideo": {"session": "{session}", "chatId": CHAT, "file": FILE, "convert": False, "asNote": False},
    "/api/sendLocation": {"session": "{session}", "chatId": CHAT, "latitude": -23.5, "longitude": -46.6, "title": "SP"},
    "/api/sendContactVcard": {
        "session": "{session}",
        "chatId": CHAT,
        "contacts": [{"fullName": "Ana", "phoneNumber": "+55 11 98888-0002", "whatsappId": "5511988880002"}],
    },
    "/api/sendPoll": {
        "session": "{session}",
        "chatId": CHAT,
        "poll": {"name": "Dia?", "options": ["a", "b"], "multipleAnswers": False},
    },
    "/api/forwardMessage": {"session": "{session}", "chatId": CHAT, "messageId": "{message_id}"},
    "/api/reaction": {"session": "{session}", "messageId": "{message_id}", "reaction": "👍"},
    "/api/sessions": {"name": "{other}", "start": False, "config": {"metadata": {"a": "b"}, "webhooks": []}},
    "/api/sessions/{session}": {
        "config": {"noweb": {"markOnline": True, "store": {"enabled": True, "fullSync": False}}}
    },
    "/api/sessions/start": {"name": "{other}"},
    "/api/sessions/stop": {"name": "{other}", "logout": False},
    "/api/sessions/logout": {"name": "{other}"},
    "/api/{session}/auth/request-code": {"phoneNumber": "5511999990001"},
    "/api/{session}/chats/overview": {"pagination": {"limit": 5, "offset": 0}, "filter": {"ids": [CHAT]}},
    "/api/{session}/chats/{chat_id}/messages/{message_id}": {"text": "mudou"},
    "/api/{session}/contacts/{chat_id}": {"firstName": "Ana", "lastName": "Silva"},
    "/api/{session}/media/convert/voice": {"data": "iVBORw0KGgo="},
    "/api/{session}/media/convert/video": {"data": "iVBORw0KGgo="},
    "/api/{session}/groups": {"name": "Clientes", "participants": [{"id": CHAT}]},
    "/api/{session}/groups/join": {"code": "{invite}"},
    "/api/{session}/groups/{group_id}/subject": {"subject": "Novo nome"},
    "/api/{session}/groups/{group_id}/description": {"description": "Sobre"},
    "/api/{session}/groups/{group_id}/settings/security/messages-admin-only": {"adminsOnly": True},
    "/api/{session}/groups/{group_id}/settings/security/info-admin-only": {"adminsOnly": True},
    "/api/{session}/groups/{group_id}/participants/add": {"participants": [{"id": "5511988880009@c.us"}]},
    "/api/{session}/groups/{group_id}/participants/remove": {"participants": [{"id": CHAT}]},
    "/api/{session}/groups/{group_id}/admin/promote": {"participants": [{"id": CHAT}]},
    "/api/{session}/groups/{group_id}/admin/demote": {"participants": [{"id": CHAT}]},
    "/api/server/stop": {"force": False},
}
QUERIES = {
    "/api/sendText": f"phone={CHAT}&text=oi&session={{session}}",
    "/api/contacts": f"contactId={CHAT}&session={{session}}",
    "/api/contacts/all": "session={session}",
    "/api/contacts/check-exists": "phone=5511988880001&session={session}",
    "/api/checkNumberStatus": "phone=5511988880001&session={session}",
    "/api/contacts/about": f"contactId={CHAT}&session={{session}}",
    "/api/contacts/profile-picture": f"contactId={CHAT}&session={{session}}",
    "/api/messages": f"chatId={CHAT}&session={{session}}",
    "/api/screenshot": "session={scanning}",
    "/api/{session}/groups/join-info": "code={invite}",
}
DESCRIBED = [(method, path) for method, path, _, _ in ROUTES if path not in UNDESCRIBED]


@pytest.mark.parametrize(("method", "path"), DESCRIBED, ids=[f"{method} {path}" for method, path in DESCRIBED])
@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_call_is_as_waha_describes_it(waha: Caller, engine: str, method: str, path: str) -> None:
    values = scene(waha, engine, method, path)
    body = filled(BODIES.get(path), values) if method in ("POST", "PUT") else None
    assert openapi.operation(method, path) is not None, "the document knows no such call"
    if body is not None:
        assert openapi.faults_of_request(method, path, body) == []
    query = QUERIES.get(path)
    asked = filled(path, values) + (f"?{filled(query, values)}" if query and method == "GET" else "")
    headers = {"X-Api-Key": waha.key, "Accept": "application/json", "Content-Type": "application/json"}
    answer = waha.ask(method, asked, body, headers)
    if (engine, path) in NOT_THERE:
        assert answer.status_code == NOT_THERE[engine, path]
        return
    assert answer.status_code in (200, 201), answer.text
    if "json" in answer.headers.get("Content-Type", ""):
        shown = answer.json()
        if path == "/api/sessions" and method == "GET":  # others' sessions are others' matter
            shown = [row for row in shown if row["name"] == values["session"]]
        found = openapi.faults_of_answer(method, path, answer.status_code, shown)
        assert bool(found) is ((engine, method, path) in UNTRUE), found


# What an engine cannot do, and how it says so.
NOT_THERE = {("NOWEB", "/api/contacts/about"): 501, ("WEBJS", "/api/{session}/new-message-id"): 501}
# Where the document promises a WAMessage, and the engine sends a shape of its own.
UNTRUE = {
    ("NOWEB", "POST", "/api/sendText"),
    ("GOWS", "POST", "/api/sendText"),
    ("WEBJS", "POST", "/api/sendText"),
    ("GOWS", "POST", "/api/forwardMessage"),
    ("WEBJS", "POST", "/api/forwardMessage"),
}


def test_what_the_document_does_not_know_is_named() -> None:
    undescribed = {path for method, path, _, _ in ROUTES if openapi.operation(method, path) is None}
    assert undescribed == UNDESCRIBED


def test_the_document_is_no_rubber_stamp() -> None:
    body = {"session": "a", "chatId": CHAT, "text": 5}
    assert openapi.faults_of_request("POST", "/api/sendText", body) != []
    assert openapi.faults_of_answer("GET", "/api/sessions/{session}", 200, {"name": "a", "status": "ASLEEP"}) != []
    assert openapi.faults_of("WAMessage", {"id": 5}) != []


@pytest.mark.parametrize("engine", list(ENGINES))
def test_events_are_as_waha_describes_them(waha: Caller, receiver: Receiver, engine: str) -> None:
    """One of each that messages and groups cause."""
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "*")], webjs={"tagsEventsOn": True})
    waha.control.set_engine(name, engine)
    cause_everything(waha, name)
    assert waiting.until(lambda: set(SCHEMAS) <= {item.event["event"] for item in receiver.arrivals("/h")})
    for arrival in receiver.arrivals("/h"):
        event = arrival.event
        if event["event"] in SCHEMAS:
            assert openapi.faults_of(SCHEMAS[event["event"]], event["payload"]) == [], event["event"]


SCHEMAS = {
    "message": "WAMessage",
    "message.any": "WAMessage",
    "message.ack": "WAMessageAckBody",
    "message.ack.group": "WAMessageAckBody",
    "message.reaction": "WAMessageReaction",
    "message.edited": "WAMessageEditedBody",
    "message.revoked": "WAMessageRevokedBody",
    "poll.vote": "PollVotePayload",
    "group.v2.join": "GroupV2JoinEvent",
    "group.v2.update": "GroupV2UpdateEvent",
    "group.v2.participants": "GroupV2ParticipantsEvent",
    "group.v2.leave": "GroupV2LeaveEvent",
    "call.received": "CallData",
    "presence.update": "WAHAChatPresences",
}


def cause_everything(waha: Caller, name: str) -> None:
    control = waha.control
    control.group(name, GROUP, subject="Clientes", members=["5511988880001"], admin=True)
    waha.send(name, CHAT, "olá")
    waha.send(name, GROUP, "olá a todos")
    first = control.inbound(name, sender="5511988880001", text="oi", push_name="Ana")
    poll = control.inbound(name, sender="5511988880001", text=None, type="poll", name="Dia?", options=["a", "b"])
    control.inbound(name, sender="5511988880001", text=None, type="vote", target=poll, options=["a"])
    control.inbound(name, sender="5511988880001", text="👍", type="reaction", target=first)
    control.inbound(name, sender="5511988880001", text="outro", type="edit", target=first)
    control.inbound(name, sender="5511988880001", text=None, type="revoke", target=first)
    control.group_members(name, GROUP, add=["5511988880005"])
    waha.put(f"/api/{name}/groups/{GROUP}/subject", {"subject": "VIP"})
    control.call(name, sender="5511988880001")
    control.presence(name, CHAT, "typing")
    assert waiting.until(lambda: control.state()["webhooks"]["pending"] == 0)
    control.leave_group(name, GROUP)


def scene(waha: Caller, engine: str, method: str, path: str) -> dict[str, str]:
    """What the placeholders stand for: a session with a chat, a group and a contact."""
    name = waha.working_session(noweb={"store": STORE})
    waha.control.set_engine(name, engine)
    waha.control.save_contact(name, "5511988880001", name="Ana", lid=LID)
    waha.control.group(name, GROUP, subject="Clientes", members=["5511988880001"], admin=True)
    message_id = waha.control.phone_sends(name, to=CHAT, text="oi")
    waha.control.inbound(name, sender="5511988880001", text="olá", push_name="Ana")
    values = {"session": name, "message_id": message_id, "chat_id": CHAT, "group_id": GROUP}
    values |= {"lid": LID, "phone": "5511988880001", "other": f"{name}-b", "invite": "", "scanning": name}
    if path in ("/api/{session}/groups/join", "/api/{session}/groups/join-info"):
        values["invite"] = waha.get(f"/api/{name}/groups/{GROUP}/invite-code").json()
    if "{session}/auth" in path or path == "/api/screenshot":
        values["session"] = values["scanning"] = waha.new_session()
        waha.control.wait_for_status(values["session"], "SCAN_QR_CODE")
    if path == "/api/sessions/start":
        waha.post("/api/sessions", {"name": values["other"], "start": False})
    if path == "/api/sessions/{session}/start":
        waha.post(f"/api/sessions/{name}/stop")
    return values


def filled(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if not isinstance(value, str):
        return value
    for name, found in values.items():
        value = value.replace(f"{{{name}}}", found)
    return value
