"""Sending: the path that must be fast, and the courtesies around it."""

from typing import Any

from aiohttp import web

from simulator import addresses, contents, refusals, sending
from simulator.api.guard import WORLD, arrived_at, plan_of, read_body, remember, reply
from simulator.contents import Content
from simulator.messages import Message
from simulator.session import Session


async def send_text(request: web.Request) -> web.Response:
    """201 in the engine's own shape. Nothing is validated: what is wrong ends in a 500 that echoes it."""
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    chat_id, text = chat_id_of(body), _text(body)
    quoted = quoted_of(session, body)
    content = contents.text(text, context=context_of(session, quoted))
    message = await deliver(request, body, session, chat_id=chat_id, content=content, quoted=quoted)
    return reply(201, session.engine.answer(message, session.me or {}))


async def send_text_by_query(request: web.Request) -> web.Response:
    """`GET /api/sendText`, deprecated."""
    query = request.query
    session = await request.app[WORLD].ready(session_name(query))
    body = {"chatId": query.get("phone"), "text": query.get("text")}
    content = contents.text(_text(body))
    message = await deliver(request, body, session, chat_id=chat_id_of(body), content=content)
    return reply(200, session.engine.answer(message, session.me or {}))


async def typing(request: web.Request) -> web.Response:
    """startTyping and stopTyping: the book keeps what the other phone shows, under the source `typing`."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = await world.ready(session_name(body))
    chat_id = chat_id_of(body)
    world.book.record(
        session=session.name,
        chat_id=chat_id,
        text=None,
        message_id="",
        id_given=False,
        source="typing",
        requested_at=arrived_at(request),
        kind=request.path.rpartition("/")[2],
    )
    return reply(201, {"result": True})


async def send_seen(request: web.Request) -> web.Response:
    body = await read_body(request)
    session = await request.app[WORLD].ready(session_name(body))
    session.read(chat_id_of(body))
    return reply(201, None)


async def new_message_id(request: web.Request) -> web.Response:
    """Since 2026.4.3, on NOWEB and GOWS."""
    world = request.app[WORLD]
    if not world.knows_ids:
        raise refusals.not_found(f"Cannot {request.method} {request.path}")
    session = await world.ready(request.match_info["session"])
    if not session.engine.takes_ids:
        raise refusals.not_implemented()
    return reply(200, {"id": world.ids.sent_message()})


# -- what all sends share -----------------------------------------------------------------------------


async def deliver(
    request: web.Request,
    body: dict[str, Any],
    session: Session,
    *,
    chat_id: str,
    content: Content,
    quoted: Message | None = None,
) -> Message:
    """Act, and set going what follows: the acks, and the echo before or after the answer."""
    world = request.app[WORLD]
    plan = plan_of(request)
    given = body.get("id")
    message, entry = sending.act(
        world,
        session,
        chat_id=chat_id,
        content=content,
        given_id=given if isinstance(given, str) and given else None,
        quoted=quoted,
        requested_at=arrived_at(request),
    )
    remember(request, entry)
    sending.follow(world, session, message, plan)
    await sending.echo(world, session, message, plan)
    return message


def session_name(body: Any) -> str:
    """Raises the 400 of a body or a query without one."""
    name = body.get("session")
    if not isinstance(name, str) or not name:
        raise refusals.bad_request("Session name is required")
    return name


def chat_id_of(body: dict[str, Any]) -> str:
    """With a suffix; raises the 500 of what is no text."""
    chat_id = body.get("chatId")
    if isinstance(chat_id, str):
        return addresses.with_suffix(chat_id)
    if chat_id is None:
        kind = "null" if "chatId" in body else "undefined"
        raise type_error(f"Cannot read properties of {kind} (reading 'includes')")
    raise type_error("phone.includes is not a function")


def quoted_of(session: Session, body: dict[str, Any]) -> Message | None:
    """What `reply_to` names; unknown, it is sent without the quote."""
    reply_to = body.get("reply_to")
    return session.messages.find(reply_to) if isinstance(reply_to, str) and reply_to else None


def context_of(session: Session, quoted: Message | None) -> dict[str, Any] | None:
    """What the engine puts into a message that quotes another."""
    if quoted is None:
        return None
    author = quoted.author((session.me or {}).get("id", ""))
    return contents.context(stanza_id=quoted.bare, participant=addresses.to_engine(author), quoted=quoted.data)


def _text(body: dict[str, Any]) -> str:
    text = body.get("text")
    if isinstance(text, str):
        return text
    if text is None:
        kind = "null" if "text" in body else "undefined"
        raise type_error(f"Cannot read properties of {kind} (reading 'match')")
    raise type_error("text.match is not a function")


def type_error(message: str) -> refusals.EngineError:
    return refusals.EngineError(message, name="TypeError")
