"""Messages on command: what others write, what the owner types, single acks, calls, and events of any shape."""

import base64
import binascii
from typing import Any

from aiohttp import web

from simulator import addresses, composing, contents, receiving, refusals
from simulator.api.guard import WORLD, read_body, reply
from simulator.control.guard import (
    CommandError,
    Route,
    choice_of,
    flag_of,
    number_of,
    optional_text,
    phone_of,
    session_named,
    text_of,
)
from simulator.messages import ACK_NAMES, Message
from simulator.session import Session
from simulator.states import Status

CALLS = {"received": "offer", "accepted": "accept", "rejected": "reject"}
PRESENCES = ("online", "offline", "typing", "recording", "paused")
SHOWN = 200


async def inbound(request: web.Request) -> web.Response:
    """Someone writes; see `README.md` for the types and their fields."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = session_named(request, body)
    sender = _address(body["from"], "from")
    chat_id = optional_text(body, "chat_id")
    at = body.get("timestamp")
    quoted = _quoted(session, body)
    content = composing.compose(
        session,
        body,
        chat_id=chat_id or addresses.with_suffix(sender),
        quoted=quoted,
        at_ms=world.clock.now_ms(),
    )
    message = receiving.inbound(
        world,
        session,
        sender=sender,
        content=content,
        chat_id=chat_id,
        message_id=optional_text(body, "id"),
        push_name=optional_text(body, "push_name"),
        as_lid=flag_of(body, "lid"),
        is_hidden=flag_of(body, "hidden"),
        comes_twice=flag_of(body, "twice"),
        quoted=quoted,
        media=composing.media_of(body, content),
        at=None if at is None else int(number_of(at, "timestamp")),
    )
    return reply(201, {"id": message.full})


async def phone_sends(request: web.Request) -> web.Response:
    """`{"session", "to", …}`: written on the session's own phone, any type."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = session_named(request, body)
    if session.status is Status.STOPPED:
        raise refusals.wrong_status(session.name, session.status, (Status.WORKING,))
    to = addresses.with_suffix(text_of(body["to"], "to"))
    quoted = _quoted(session, body)
    content = composing.compose(session, body, chat_id=to, quoted=quoted, at_ms=world.clock.now_ms())
    message = receiving.phone_sends(
        world,
        session,
        to=to,
        content=content,
        message_id=optional_text(body, "id"),
        quoted=quoted,
        with_acks=flag_of(body, "acks"),
    )
    return reply(201, {"id": message.full})


async def acknowledge(request: web.Request) -> web.Response:
    """`{"session", "id", "ack", "chat_id"?}`: one `message.ack`, of any rank, of a message known or not."""
    body = await read_body(request)
    session = session_named(request, body)
    message_id, ack = text_of(body["id"], "id"), int(number_of(body["ack"], "ack"))
    message = session.messages.find(message_id) or _stranger(message_id, body.get("chat_id"))
    message.ack = ack
    session.emit("message.ack", session.engine.ack_payload(message, ack, session.me or {}))
    return reply(201, {"id": message.full, "ack": ack, "ackName": ACK_NAMES.get(ack, "UNKNOWN")})


async def call(request: web.Request) -> web.Response:
    """`{"session", "from", "event"?, "video"?, "id"?}`: someone calls."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = session_named(request, body)
    event = choice_of(body, "event", CALLS, "received")
    caller = addresses.with_suffix(_address(body["from"], "from"))
    call_id = optional_text(body, "id") or world.ids.phone_message()
    shown = {"id": call_id, "isVideo": flag_of(body, "video"), "isGroup": False}
    jid = addresses.to_engine(caller)
    details = shown | {"from": jid, "chatId": jid, "status": CALLS[event], "offline": False}
    payload = shown | {"from": caller, "timestamp": int(world.clock.now()), "_data": details}
    session.when_working(lambda: _emit(session, f"call.{event}", payload))
    return reply(201, {"id": call_id})


async def presence(request: web.Request) -> web.Response:
    """`{"session", "chat_id", "presence", "participant"?}`: someone types, records, comes or goes."""
    body = await read_body(request)
    session = session_named(request, body)
    shown = choice_of(body, "presence", PRESENCES, "typing")
    chat_id = addresses.with_suffix(text_of(body["chat_id"], "chat_id"))
    who = {"participant": optional_text(body, "participant") or chat_id, "lastKnownPresence": shown, "lastSeen": None}
    _emit(session, "presence.update", {"id": chat_id, "presences": [who]})
    return reply(201, {"id": chat_id})


async def event(request: web.Request) -> web.Response:
    """`{"session", "event", "payload"}`, or `raw` (base64) for the whole body: signed and posted as it is."""
    body = await read_body(request)
    session = session_named(request, body)
    name = text_of(body["event"], "event")
    if body.get("raw") is None:
        return reply(201, {"hooks": len(session.emit(name, body.get("payload")))})
    try:
        raw = base64.b64decode(body["raw"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise CommandError("raw must be base64") from None
    return reply(201, {"hooks": len(session.post(name, raw))})


# -- for the page -------------------------------------------------------------------------------------


async def list_chats(request: web.Request) -> web.Response:
    """`?session=`: `chats`, each with its last message, the newest first, and `phones` behind hidden ids."""
    world = request.app[WORLD]
    session = world.require(request.query["session"])
    rows = list(session.messages.last_of_chats().items())[:SHOWN]
    chats = [{"chat_id": chat_id, "name": _name(session, chat_id), "last": _shown(last)} for chat_id, last in rows]
    phones = {lid: addresses.phone_of(pn) for lid, pn in session.people.lids()}
    return reply(200, {"chats": chats, "phones": phones})


async def list_messages(request: web.Request) -> web.Response:
    """`?session= &chat_id=`: the last 200 of a chat, the oldest first, under all ids of its phone."""
    session = request.app[WORLD].require(request.query["session"])
    chats = session.people.both(request.query["chat_id"])
    found = [message for message, _ in zip(session.messages.newest_first(chats), range(SHOWN), strict=False)]
    return reply(200, [_shown(message) for message in reversed(found)])


async def read_chat(request: web.Request) -> web.Response:
    """`{"session", "chat_id"}`: the other phone opens the chat, and what it got is read."""
    body = await read_body(request)
    session = session_named(request, body)
    chats = session.people.both(text_of(body["chat_id"], "chat_id"))
    unread = [message for message in session.messages.newest_first(chats) if message.from_me and 0 <= message.ack < 3]
    for message in unread:
        message.ack = 3
        session.emit("message.ack", session.engine.ack_payload(message, 3, session.me or {}))
    return reply(200, {"read": len(unread)})


def _shown(message: Message) -> dict[str, Any]:
    """A message for people: what they wrote, when, and how far it came."""
    content = message.content
    poll = content.data.get("pollCreationMessageV3")
    url = (message.media or {}).get("url")
    return {
        "id": message.full,
        "from_me": message.from_me,
        "participant": message.participant,
        "push_name": message.push_name,
        "kind": content.kind,
        "text": content.body,
        "at": message.at,
        "ack": message.ack,
        "source": message.source,
        "is_revoked": message.is_revoked,
        "reply_to": None if message.quoted is None else {"id": message.quoted.full, "text": message.quoted.text},
        "file": None if url is None else url.rpartition("/")[2],
        "mimetype": None if content.file is None else content.file.mimetype,
        "filename": None if content.file is None else content.file.filename,
        "location": content.location,
        "vcards": content.vcards,
        "poll": poll and {"name": poll["name"], "options": [row["optionName"] for row in poll["options"]]},
        "reactions": message.reactions or {},
    }


def _name(session: Session, chat_id: str) -> str | None:
    group = session.groups.get(chat_id)
    return session.people.name_of(chat_id) if group is None else group.subject


def _quoted(session: Session, body: dict[str, Any]) -> Message | None:
    reply_to = body.get("reply_to")
    return session.messages.find(text_of(reply_to, "reply_to")) if reply_to else None


def _address(value: Any, name: str) -> str:
    """A phone in digits, or any chat id."""
    given = text_of(value, name)
    return given if "@" in given else phone_of(given, name)


def _stranger(message_id: str, chat_id: Any) -> Message:
    """A message that this server never saw, as after a move to it."""
    parts = message_id.split("_")
    where = parts[1] if len(parts) > 2 else addresses.with_suffix(text_of(chat_id, "chat_id"))
    return Message(
        bare=addresses.bare_id(message_id),
        chat_id=where,
        from_me=not message_id.startswith("false_"),
        content=contents.empty(),
        at=0,
    )


def _emit(session: Session, name: str, payload: dict[str, Any]) -> None:
    session.emit(name, payload)


ROUTES: list[Route] = [
    ("POST", "/control/inbound", inbound),
    ("POST", "/control/phone-sends", phone_sends),
    ("POST", "/control/acks", acknowledge),
    ("POST", "/control/calls", call),
    ("POST", "/control/presence", presence),
    ("POST", "/control/events", event),
    ("GET", "/control/chats", list_chats),
    ("GET", "/control/messages", list_messages),
    ("POST", "/control/reads", read_chat),
]
