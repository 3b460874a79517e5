"""Sending what is more than a text: files, places, cards, polls, and messages passed on."""

import base64
import binascii
from typing import Any

from aiohttp import web

from simulator import contents, engines, keeping, refusals
from simulator.api.chatting import chat_id_of, context_of, deliver, quoted_of, session_name, type_error
from simulator.api.guard import WORLD, Handler, arrived_at, read_body, reply
from simulator.files import File
from simulator.messages import Message
from simulator.session import Session
from simulator.world import World


def send_file(kind: str) -> Handler:
    """A handler of sendImage, sendFile, sendVoice or sendVideo; `file` has `url` or base64 `data`."""

    async def send(request: web.Request) -> web.Response:
        body = await read_body(request)
        world = request.app[WORLD]
        session = await world.ready(session_name(body))
        if world.options.is_restricted:
            raise refusals.unprocessable(refusals.PLUS_ONLY.format(engine=world.options.engine))
        quoted = quoted_of(session, body)
        caption = body.get("caption")
        content = contents.media(
            "video_note" if kind == "video" and body.get("asNote") else kind,
            await _file_of(world, body),
            caption=caption if isinstance(caption, str) else None,
            context=context_of(session, quoted),
            at=int(arrived_at(request)),
        )
        message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content, quoted=quoted)
        return reply(201, session.engine.answer(message, session.me or {}))

    return send


async def send_location(request: web.Request) -> web.Response:
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    quoted = quoted_of(session, body)
    content = contents.location(
        _degrees(body, "latitude"),
        _degrees(body, "longitude"),
        name=body.get("title"),
        context=context_of(session, quoted),
    )
    message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content, quoted=quoted)
    return reply(201, session.engine.answer(message, session.me or {}))


async def send_contacts(request: web.Request) -> web.Response:
    """Each contact is a card in text, or the fields of one."""
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    given = body.get("contacts")
    if not isinstance(given, list) or not all(isinstance(contact, dict) for contact in given):
        raise type_error("contacts.map is not a function")
    quoted = quoted_of(session, body)
    content = contents.contacts([_vcard(contact) for contact in given], context=context_of(session, quoted))
    message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content, quoted=quoted)
    return reply(201, session.engine.answer(message, session.me or {}))


async def send_poll(request: web.Request) -> web.Response:
    """NOWEB too answers in the shape of a webhook here."""
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    poll = body.get("poll")
    if not isinstance(poll, dict):
        raise type_error("Cannot read properties of undefined (reading 'name')")
    options = poll.get("options")
    if not isinstance(options, list):
        raise type_error("Cannot read properties of undefined (reading 'length')")
    content = contents.poll(
        str(poll.get("name")), [str(option) for option in options], several=bool(poll.get("multipleAnswers"))
    )
    message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content)
    return reply(201, _as_message(session, message))


async def forward(request: web.Request) -> web.Response:
    """422 when the message is not known; WEBJS says no more than that it was sent."""
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    message_id = body.get("messageId")
    known = session.messages.find(message_id) if isinstance(message_id, str) else None
    if known is None:
        raise refusals.unprocessable(f"Message with id '{message_id}' not found")
    content = keeping.whole(request.app[WORLD], session, known)
    message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content)
    if session.engine.name == "WEBJS":
        return reply(201, {"sent": True})
    return reply(201, _as_message(session, message))


def _as_message(session: Session, message: Message) -> dict[str, Any]:
    me = session.me or {}
    if session.engine.name == "NOWEB":
        return engines.payload(session.engine, message, me)
    return session.engine.answer(message, me)


async def _file_of(world: World, body: dict[str, Any]) -> File:
    file = body.get("file")
    if not isinstance(file, dict):
        kind = "null" if "file" in body and file is None else "undefined"
        raise type_error(f"Cannot read properties of {kind} (reading 'data')")
    name = file.get("filename")
    filename = name if isinstance(name, str) else None
    if file.get("data"):
        return File(_decode(str(file["data"])), _mimetype(file, "application/octet-stream"), filename)
    data, served_as = await world.fetcher.fetch(str(file.get("url")))
    return File(data, _mimetype(file, served_as), filename)


def _mimetype(file: dict[str, Any], otherwise: str) -> str:
    """What the caller says it is; WAHA does not look inside."""
    given = file.get("mimetype")
    return given if isinstance(given, str) and given else otherwise


def _decode(data: str) -> bytes:
    """As Node does it: what is no base64 is left out, no padding needed."""
    kept = "".join(letter for letter in data if letter.isascii() and (letter.isalnum() or letter in "+/-_"))
    kept = kept.replace("-", "+").replace("_", "/")
    kept = kept[: len(kept) - 1] if len(kept) % 4 == 1 else kept
    try:
        return base64.b64decode(kept + "=" * (-len(kept) % 4))
    except binascii.Error:
        return b""


def _degrees(body: dict[str, Any], name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise type_error(f"Cannot convert {name} to a number")
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        raise type_error(f"{name}: NaN") from None


def _vcard(contact: dict[str, Any]) -> str:
    if isinstance(contact.get("vcard"), str):
        return str(contact["vcard"])
    return contents.vcard(
        name=str(contact.get("fullName")),
        phone=str(contact.get("phoneNumber")),
        whatsapp_id=contact.get("whatsappId"),
        organization=contact.get("organization"),
    )
