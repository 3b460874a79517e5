"""The list of chats, plain and with each chat's last message."""

from typing import Any

from aiohttp import web

from simulator import addresses, engines
from simulator.api.contacts import PICTURE
from simulator.api.guard import WORLD, read_body, reply
from simulator.api.messages import number, require_store
from simulator.messages import Message
from simulator.session import Session

_MOST = 2**31


async def list_chats(request: web.Request) -> web.Response:
    """The chat written to last first."""
    session = await _ready(request)
    offset, limit = number(request, "offset", 0), number(request, "limit", _MOST)
    rows = list(session.messages.last_of_chats().items())[offset : offset + limit]
    return reply(200, [_row(session, chat_id, message) for chat_id, message in rows])


async def overview(request: web.Request) -> web.Response:
    """`?ids=` chooses chats, repeated or once."""
    session = await _ready(request)
    wanted = request.query.getall("ids", [])
    return reply(
        200, _overview(session, wanted, offset=number(request, "offset", 0), limit=number(request, "limit", 20))
    )


async def overview_by_body(request: web.Request) -> web.Response:
    """`{"pagination": {"limit", "offset"}, "filter": {"ids"}}`."""
    session = await _ready(request)
    body = await read_body(request)
    page, chosen = body.get("pagination") or {}, body.get("filter") or {}
    found = _overview(session, chosen.get("ids") or [], offset=page.get("offset", 0), limit=page.get("limit", 20))
    return reply(201, found)


async def picture(request: web.Request) -> web.Response:
    await request.app[WORLD].ready(request.match_info["session"])
    number = request.app[WORLD].directory.get(addresses.phone_of(request.match_info["chat_id"]))
    return reply(200, {"url": (number.picture if number else None) or PICTURE})


async def _ready(request: web.Request) -> Session:
    session = await request.app[WORLD].ready(request.match_info["session"])
    require_store(session)
    return session


def _overview(session: Session, wanted: list[str], *, offset: int, limit: int) -> list[dict[str, Any]]:
    rows = session.messages.last_of_chats().items()
    chosen = [(chat_id, message) for chat_id, message in rows if not wanted or chat_id in wanted]
    return [
        {
            "id": chat_id,
            "name": _name(session, chat_id),
            "picture": PICTURE,
            "lastMessage": engines.stored(session.engine, message, session.me or {}),
            "_chat": _row(session, chat_id, message),
        }
        for chat_id, message in chosen[offset : offset + limit]
    ]


def _row(session: Session, chat_id: str, message: Message) -> dict[str, Any]:
    return session.engine.chat(chat_id, _name(session, chat_id), message.at)


def _name(session: Session, chat_id: str) -> str | None:
    group = session.groups.get(chat_id)
    return session.people.name_of(chat_id) if group is None else group.subject
