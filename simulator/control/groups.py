"""Groups on command: a session finds itself in one, and others come and go."""

from typing import Any

from aiohttp import web

from simulator import grouping
from simulator.api.guard import WORLD, read_body, reply
from simulator.control.guard import (
    CommandError,
    Route,
    choice_of,
    flag_of,
    optional_text,
    phone_of,
    session_of,
    text_of,
)
from simulator.groups import ROLES, Group, Member
from simulator.session import Session
from simulator.world import World


async def put_group(request: web.Request) -> web.Response:
    """`{"subject", "members", "description"?, "announce"?, "admin"?}`: somebody adds the account to a group.

    A member is a phone or `{"phone", "role"?, "lid"?}`; `admin` makes the account its founder.
    """
    body = await read_body(request)
    world, session = request.app[WORLD], session_of(request)
    members = [_member(world, row) for row in _list(body, "members")]
    others = [member.pn for member in members]
    group = grouping.found(
        world,
        session,
        group_id=request.match_info["group"],
        subject=text_of(body["subject"], "subject"),
        members=members,
        owner=None if flag_of(body, "admin") or not others else others[0],
        description=optional_text(body, "description") or "",
        announce=flag_of(body, "announce"),
    )
    return reply(200, group.as_v2())


async def change_members(request: web.Request) -> web.Response:
    """`{"add"?, "remove"?, "promote"?, "demote"?}`, each a list of members."""
    body = await read_body(request)
    world, session = request.app[WORLD], session_of(request)
    group = _group(session, request.match_info["group"])
    grouping.add(world, session, group, [_member(world, row) for row in _list(body, "add")])
    for name, deed in (("remove", grouping.remove), ("promote", grouping.promote), ("demote", grouping.demote)):
        deed(world, session, group, [_member(world, row).pn for row in _list(body, name)])
    return reply(200, group.as_v2())


async def change_group(request: web.Request) -> web.Response:
    """`{"subject"?, "description"?, "announce"?}`: an admin changes it."""
    body = await read_body(request)
    session = session_of(request)
    group = _group(session, request.match_info["group"])
    unknown = set(body) - {"subject", "description", "announce"}
    if unknown:
        raise CommandError(f"unknown: {', '.join(sorted(unknown))}")
    texts = {name: text_of(body[name], name) for name in ("subject", "description") if name in body}
    flags = {name: flag_of(body, name) for name in ("announce",) if name in body}
    grouping.update(request.app[WORLD], session, group, **texts, **flags)
    return reply(200, group.as_v2())


async def remove_group(request: web.Request) -> web.Response:
    """The account is thrown out."""
    session = session_of(request)
    grouping.leave(request.app[WORLD], session, _group(session, request.match_info["group"]))
    return reply(200, {"removed": 1})


def _group(session: Session, group_id: str) -> Group:
    group = session.groups.get(group_id)
    if group is None:
        raise CommandError(f"no group {group_id}")
    return group


def _member(world: World, row: Any) -> Member:
    if isinstance(row, str):
        return grouping.member(world, phone_of(row, "a member"))
    if not isinstance(row, dict):
        raise CommandError("a member must be a phone or an object")
    role = choice_of(row, "role", ROLES, "participant")
    return grouping.member(world, phone_of(row["phone"]), as_lid=flag_of(row, "lid"), role=role)


def _list(body: dict[str, Any], name: str) -> list[Any]:
    rows = body.get(name) or []
    if not isinstance(rows, list):
        raise CommandError(f"{name} must be a list")
    return rows


_GROUP = "/control/sessions/{session}/groups/{group}"
ROUTES: list[Route] = [
    ("PUT", _GROUP, put_group),
    ("PATCH", _GROUP, change_group),
    ("DELETE", _GROUP, remove_group),
    ("POST", f"{_GROUP}/members", change_members),
]
