"""Messages that exist: reactions, edits, deletions, look-ups."""

from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web

from simulator import addresses, contents, engines, refusals
from simulator.api.chatting import deliver, session_name, type_error
from simulator.api.guard import WORLD, read_body, reply
from simulator.contents import Content
from simulator.messages import ACK_NAMES, Message
from simulator.session import Session


async def react(request: web.Request) -> web.Response:
    """An empty reaction takes it back. The message need not be known, but its id must be a full one."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = await world.ready(session_name(body))
    key, chat_id = _key_of(body.get("messageId"))
    emoji = body.get("reaction")
    content = contents.reaction(key, emoji=emoji if isinstance(emoji, str) else "", at_ms=world.clock.now_ms())
    message = await deliver(request, body, session, chat_id=chat_id, content=content)
    return reply(200, session.engine.answer(message, session.me or {}))


async def edit(request: web.Request) -> web.Response:
    """`{"text"}`; 200 also when the message is not known."""
    body = await read_body(request)
    session = await _ready(request)
    text = body.get("text")
    if not isinstance(text, str):
        raise type_error("Cannot read properties of undefined (reading 'match')")

    def content(key: dict[str, Any]) -> Content:
        edited = {"extendedTextMessage": {"text": text}}
        return contents.edit(key, body=text, edited=edited, at_ms=request.app[WORLD].clock.now_ms())

    return await _change(request, session, content)


async def delete(request: web.Request) -> web.Response:
    """For everyone; 200 also when the message is not known."""
    return await _change(request, await _ready(request), contents.revoke)


async def message_by_id(request: web.Request) -> web.Response:
    """By full or bare id, in its own chat only; 404 otherwise, 400 where NOWEB's store is off."""
    session = await _ready(request)
    require_store(session)
    wanted = chats_of(request, session)
    message = session.messages.find(request.match_info["message_id"])
    if message is None or (wanted is not None and message.chat_id not in wanted):
        raise refusals.not_found("Message not found")
    return reply(200, engines.stored(session.engine, message, session.me or {}))


async def list_messages(request: web.Request) -> web.Response:
    """`/api/{session}/chats/{chatId}/messages`, the chat `all` being every one; the newest first."""
    session = await _ready(request)
    require_store(session)
    return reply(200, _page(request, session, chats_of(request, session)))


async def list_messages_by_query(request: web.Request) -> web.Response:
    """`/api/messages?chatId=`, deprecated."""
    session = await request.app[WORLD].ready(session_name(request.query))
    require_store(session)
    chat_id = addresses.with_suffix(request.query.get("chatId", ""))
    return reply(200, _page(request, session, frozenset({addresses.to_public(chat_id)})))


async def read_all(request: web.Request) -> web.Response:
    """Marks what came in a chat as read; answers with the ids."""
    session = await _ready(request)
    chat_id = addresses.with_suffix(request.match_info["chat_id"])
    return reply(201, {"ids": [message.full for message in session.read(chat_id)]})


def require_store(session: Session) -> None:
    if not session.store_enabled:
        raise refusals.bad_request(refusals.STORE_OFF)


def chats_of(request: web.Request, session: Session) -> frozenset[str] | None:
    """The chat in the path, with `merge=true` under its phone and its hidden id; None for `all`."""
    given = request.match_info["chat_id"]
    if given == "all":
        return None
    chat_id = addresses.to_public(addresses.with_suffix(given))
    return session.people.both(chat_id) if is_true(request, "merge") else frozenset({chat_id})


def is_true(request: web.Request, name: str) -> bool:
    return request.query.get(name, "").lower() == "true"


def number(request: web.Request, name: str, otherwise: int) -> int:
    """A whole number of the query; raises the 400 of what is none."""
    value = request.query.get(name)
    if value is None:
        return otherwise
    if not value.isascii() or not value.isdigit():
        raise refusals.bad_request([f"{name} must be a number conforming to the specified constraints"])
    return int(value)


async def _ready(request: web.Request) -> Session:
    return await request.app[WORLD].ready(request.match_info["session"])


async def _change(request: web.Request, session: Session, content: Callable[[dict[str, Any]], Content]) -> web.Response:
    key, _ = _key_of(request.match_info["message_id"])
    chat_id = addresses.with_suffix(request.match_info["chat_id"])
    message = await deliver(request, {}, session, chat_id=chat_id, content=content(key))
    return reply(200, session.engine.answer(message, session.me or {}))


def _key_of(message_id: Any) -> tuple[dict[str, Any], str]:
    """The engine's key of a full id, and its chat; raises the 500 of what is none."""
    parts = message_id.split("_") if isinstance(message_id, str) else []
    if len(parts) not in (3, 4) or parts[0] not in ("true", "false"):
        raise refusals.EngineError(refusals.ID_FORMAT)
    key: dict[str, Any] = {
        "remoteJid": addresses.to_engine(parts[1]),
        "fromMe": parts[0] == "true",
        "id": parts[2],
    }
    if len(parts) == 4:
        key["participant"] = addresses.to_engine(parts[3])
    return key, parts[1]


def _page(request: web.Request, session: Session, chats: frozenset[str] | None) -> list[dict[str, Any]]:
    offset, limit = number(request, "offset", 0), number(request, "limit", 10)
    found = list(_filtered(request, session.messages.newest_first(chats)))
    if request.query.get("sortOrder", "desc").lower() == "asc":
        found.reverse()
    me = session.me or {}
    return [engines.stored(session.engine, message, me) for message in found[offset : offset + limit]]


def _filtered(request: web.Request, messages: Iterator[Message]) -> Iterator[Message]:
    """`filter.timestamp.gte`, `.lte` (epoch seconds), `filter.fromMe`, `filter.ack`."""
    since = number(request, "filter.timestamp.gte", 0)
    until = number(request, "filter.timestamp.lte", 2**53)
    from_me = request.query.get("filter.fromMe")
    ack = request.query.get("filter.ack")
    for message in messages:
        if not since <= message.at <= until:
            continue
        if from_me is not None and message.from_me is not (from_me.lower() == "true"):
            continue
        if ack is None or ack in (str(message.ack), ACK_NAMES.get(message.ack)):
            yield message
