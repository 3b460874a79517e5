"""Sending: the path that must be fast, and the courtesies around it."""

from typing import Any

from aiohttp import web

from simulator import addresses, refusals, sending
from simulator.api.guard import WORLD, arrived_at, plan_of, read_body, remember, reply


async def send_text(request: web.Request) -> web.Response:
    """201 in the engine's own shape. Nothing is validated: what is wrong ends in a 500 that echoes it."""
    requested_at = arrived_at(request)
    body = await read_body(request)
    world = request.app[WORLD]
    session = await world.ready(session_name(body))
    chat_id, text = _chat_id(body), _text(body)
    plan = plan_of(request)
    given = body.get("id")
    message, entry = sending.act(
        world,
        session,
        chat_id=chat_id,
        text=text,
        given_id=given if isinstance(given, str) and given else None,
        reply_to=body.get("reply_to"),
        requested_at=requested_at,
    )
    remember(request, entry)
    answer = session.engine.answer(message, session.me or {})
    sending.follow(world, session, message, plan)
    await sending.echo(world, session, message, plan)
    return reply(201, answer)


async def typing(request: web.Request) -> web.Response:
    """startTyping and stopTyping."""
    body = await read_body(request)
    await request.app[WORLD].ready(session_name(body))
    _chat_id(body)
    return reply(201, {"result": True})


async def send_seen(request: web.Request) -> web.Response:
    body = await read_body(request)
    await request.app[WORLD].ready(session_name(body))
    _chat_id(body)
    return reply(201, None)


async def new_message_id(request: web.Request) -> web.Response:
    """Since 2026.4.3, on NOWEB and GOWS."""
    world = request.app[WORLD]
    session = await world.ready(request.match_info["session"])
    if not world.takes_id(session):
        raise refusals.not_found(f"Cannot {request.method} {request.path}")
    return reply(200, {"id": world.ids.sent_message()})


def session_name(body: dict[str, Any]) -> str:
    """Raises the 400 of a body without one."""
    name = body.get("session")
    if not isinstance(name, str) or not name:
        raise refusals.bad_request("Session name is required")
    return name


def _chat_id(body: dict[str, Any]) -> str:
    chat_id = body.get("chatId")
    if isinstance(chat_id, str):
        return addresses.with_suffix(chat_id)
    if chat_id is None:
        kind = "null" if "chatId" in body else "undefined"
        raise _type_error(f"Cannot read properties of {kind} (reading 'includes')")
    raise _type_error("phone.includes is not a function")


def _text(body: dict[str, Any]) -> str:
    text = body.get("text")
    if isinstance(text, str):
        return text
    if text is None:
        kind = "null" if "text" in body else "undefined"
        raise _type_error(f"Cannot read properties of {kind} (reading 'match')")
    raise _type_error("text.match is not a function")


def _type_error(message: str) -> refusals.EngineError:
    return refusals.EngineError(message, name="TypeError")
