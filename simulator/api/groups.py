"""Groups: the list, one, its members, and what an admin does with it."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from simulator import grouping, refusals
from simulator.api.chatting import type_error
from simulator.api.contacts import PICTURE
from simulator.api.guard import WORLD, Handler, read_body, reply
from simulator.api.messages import number
from simulator.groups import Group
from simulator.session import Session

_MOST = 2**31
_INVITE = "https://chat.whatsapp.com/"


async def list_all(request: web.Request) -> web.Response:
    """NOWEB gives an object by id, the others a list; `?exclude=participants` leaves the members out."""
    session = await _session(request)
    offset, limit = number(request, "offset", 0), number(request, "limit", _MOST)
    groups = list(session.groups.values())[offset : offset + limit]
    shown = [session.engine.group(group, session.me or {}) for group in groups]
    if "participants" in request.query.getall("exclude", []):
        for row in shown:
            row.pop("participants", None)
            row.pop("Participants", None)
            row.get("groupMetadata", {}).pop("participants", None)
    if session.engine.name == "NOWEB":
        return reply(200, {row["id"]: row for row in shown})
    return reply(200, shown)


async def count(request: web.Request) -> web.Response:
    return reply(200, {"count": len((await _session(request)).groups)})


async def refresh(request: web.Request) -> web.Response:
    """Whose hidden ids stand in groups is learnt by it, too."""
    session = await _session(request)
    for group in session.groups.values():
        for member in group.members.values():
            if member.lid is not None:
                session.people.learn(member.lid, member.pn)
    return reply(201, {"success": True})


async def create(request: web.Request) -> web.Response:
    """`{"name", "participants": [{"id"}]}`."""
    session = await _session(request)
    body = await read_body(request)
    world = request.app[WORLD]
    members = [grouping.member(world, chat_id) for chat_id in _ids(body)]
    group = grouping.found(world, session, subject=str(body.get("name", "")), members=members)
    return reply(201, session.engine.group(group, session.me or {}))


async def read(request: web.Request) -> web.Response:
    session, group = await _group(request)
    return reply(200, session.engine.group(group, session.me or {}))


async def leave(request: web.Request) -> web.Response:
    """Also what `DELETE` comes to: nobody can delete a group for the others."""
    session, group = await _group(request)
    grouping.leave(request.app[WORLD], session, group)
    return reply(200 if request.method == "DELETE" else 201, None)


async def participants(request: web.Request) -> web.Response:
    """In the engine's shape."""
    session, group = await _group(request)
    shown = session.engine.group(group, session.me or {})
    rows = shown.get("participants") or shown.get("Participants") or shown.get("groupMetadata", {}).get("participants")
    return reply(200, rows or [])


async def participants_v2(request: web.Request) -> web.Response:
    """In WAHA's own shape, the same on every engine."""
    _, group = await _group(request)
    return reply(200, [member.as_v2() for member in group.members.values()])


async def add(request: web.Request) -> web.Response:
    session, group = await _admin(request)
    world = request.app[WORLD]
    ids = _ids(await read_body(request))
    grouping.add(world, session, group, [grouping.member(world, chat_id) for chat_id in ids])
    return reply(201, [{"status": "200", "jid": chat_id} for chat_id in ids])


def change(deed: Callable[..., Any]) -> Handler:
    """A handler that removes, promotes or demotes those in the body."""

    async def changed(request: web.Request) -> web.Response:
        session, group = await _admin(request)
        ids = _ids(await read_body(request))
        deed(request.app[WORLD], session, group, ids)
        return reply(201, [{"status": "200", "jid": chat_id} for chat_id in ids])

    return changed


def update(given: str, field: str) -> Handler:
    """A handler that takes one field of the body into the group."""

    async def updated(request: web.Request) -> web.Response:
        session, group = await _admin(request)
        value = (await read_body(request)).get(given)
        grouping.update(request.app[WORLD], session, group, **{field: value})
        return reply(200, {"success": True})

    return updated


def setting(field: str) -> Handler:
    """A handler that reads one switch of the group."""

    async def read_setting(request: web.Request) -> web.Response:
        _, group = await _group(request)
        return reply(200, {"adminsOnly": bool(getattr(group, field))})

    return read_setting


async def invite_code(request: web.Request) -> web.Response:
    _, group = await _admin(request)
    return reply(200, group.invite)


async def revoke_invite_code(request: web.Request) -> web.Response:
    _, group = await _admin(request)
    group.invite = request.app[WORLD].ids.invite()
    return reply(201, group.invite)


async def join_info(request: web.Request) -> web.Response:
    session = await _session(request)
    return reply(200, session.engine.group(_invited(request, request.query.get("code", "")), session.me or {}))


async def join(request: web.Request) -> web.Response:
    """By the code or the whole link of an invitation to a group that another session of this server is in."""
    session = await _session(request)
    group = _invited(request, str((await read_body(request)).get("code", "")))
    pn = (session.me or {}).get("id", "")
    group.add([grouping.member(request.app[WORLD], pn)])
    session.groups[group.id] = group
    return reply(201, {"id": group.id})


async def picture(request: web.Request) -> web.Response:
    await _group(request)
    return reply(200, {"url": PICTURE})


async def _session(request: web.Request) -> Session:
    return await request.app[WORLD].ready(request.match_info["session"])


async def _group(request: web.Request) -> tuple[Session, Group]:
    """Raises what WhatsApp says of a group that one is not in."""
    session = await _session(request)
    group = session.groups.get(request.match_info["group_id"])
    if group is None:
        raise refusals.EngineError("item-not-found", extra={"data": 404, "isBoom": True})
    return session, group


async def _admin(request: web.Request) -> tuple[Session, Group]:
    session, group = await _group(request)
    if not group.is_admin((session.me or {}).get("id", "")):
        raise refusals.EngineError("forbidden", extra={"data": 403, "isBoom": True})
    return session, group


def _invited(request: web.Request, code: str) -> Group:
    code = code.removeprefix(_INVITE)
    for session in request.app[WORLD].sessions.values():
        for group in session.groups.values():
            if code and group.invite == code:
                return group
    raise refusals.EngineError("not-acceptable", extra={"data": 406, "isBoom": True})


def _ids(body: dict[str, Any]) -> list[str]:
    given = body.get("participants")
    if not isinstance(given, list):
        raise type_error("Cannot read properties of undefined (reading 'map')")
    return [str(item.get("id")) for item in given if isinstance(item, dict)]
