"""Sessions: create, read, replace, start, stop, restart, log out, delete."""

from typing import Any

from aiohttp import web

from simulator import refusals, validation
from simulator.api.guard import WORLD, read_body, reply
from simulator.restriction import NO_TIMELOCK
from simulator.states import Status


async def create(request: web.Request) -> web.Response:
    """201, or 422 for a name in use. `start` is false unless told, whatever the docs say."""
    body = await read_body(request)
    world = request.app[WORLD]
    name = validation.session_name(body)
    config = validation.session_config(body)
    if name is not None:
        world.refuse_foreign(name)
    start = bool(body.get("start"))
    session = await world.create(name=name, config=config, start=start)
    is_silent = world.options.is_restricted and not start
    return reply(201, None if is_silent else session.describe())


async def list_all(request: web.Request) -> web.Response:
    """Without `?all=true` the stopped ones are hidden."""
    shows_all = request.query.get("all", "").lower() == "true"
    sessions = request.app[WORLD].sessions.values()
    found = [item for item in sessions if shows_all or item.status is not Status.STOPPED]
    return reply(200, [item.describe(with_engine=False) for item in found])


async def read(request: web.Request) -> web.Response:
    return reply(200, request.app[WORLD].require(_name(request)).describe())


async def read_me(request: web.Request) -> web.Response:
    """The account or null; 404 when it is not running."""
    session = request.app[WORLD].require_running(_name(request))
    if session.me is None:
        return web.json_response(None)
    return reply(200, session.me)


async def update(request: web.Request) -> web.Response:
    config = validation.session_config(await read_body(request))
    session = await request.app[WORLD].update(_name(request), config)
    return reply(200, session.describe())


async def start(request: web.Request) -> web.Response:
    session = await request.app[WORLD].start(_name(request))
    return reply(201, session.describe())


async def stop(request: web.Request) -> web.Response:
    session = await request.app[WORLD].stop(_name(request))
    return reply(201, session.describe() if session else None)


async def restart(request: web.Request) -> web.Response:
    session = await request.app[WORLD].restart(_name(request))
    return reply(201, session.describe())


async def logout(request: web.Request) -> web.Response:
    session = await request.app[WORLD].logout(_name(request))
    return reply(201, session.describe())


async def delete(request: web.Request) -> web.Response:
    await request.app[WORLD].delete(_name(request))
    return reply(200, None)


async def start_deprecated(request: web.Request) -> web.Response:
    """`POST /api/sessions/start` with the name in the body."""
    name, _ = await _deprecated(request)
    session = await request.app[WORLD].start(name)
    return reply(201, session.describe())


async def stop_deprecated(request: web.Request) -> web.Response:
    """`POST /api/sessions/stop`; with `logout` the account is unpaired, too."""
    name, body = await _deprecated(request)
    if body.get("logout"):
        await request.app[WORLD].delete(name)
    else:
        await request.app[WORLD].stop(name)
    return reply(201, None)


async def logout_deprecated(request: web.Request) -> web.Response:
    name, _ = await _deprecated(request)
    await request.app[WORLD].delete(name)
    return reply(201, None)


async def timelock(request: web.Request) -> web.Response:
    """Since 2026.8.1: how long the account may not write to strangers."""
    world = request.app[WORLD]
    session = await world.ready(_newer(request))
    restriction = session.restriction
    return reply(200, restriction.as_timelock(world.clock.now()) if restriction else NO_TIMELOCK)


async def capping(request: web.Request) -> web.Response:
    """Since 2026.8.1, on GOWS: how much of its quota of new chats the account has used."""
    session = await request.app[WORLD].ready(_newer(request))
    if session.engine.name != "GOWS":
        raise refusals.not_implemented()
    return reply(200, session.capping)


def _newer(request: web.Request) -> str:
    if not request.app[WORLD].tells_restrictions:
        raise refusals.not_found(f"Cannot {request.method} {request.path}")
    return request.match_info["session"]


async def _deprecated(request: web.Request) -> tuple[str, dict[str, Any]]:
    """The name in the body, and the body; raises the 400 of one without."""
    body = await read_body(request)
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise refusals.bad_request(["name must be a string"])
    request.app[WORLD].refuse_foreign(name)
    return name, body


def _name(request: web.Request) -> str:
    name = request.match_info["session"]
    request.app[WORLD].refuse_foreign(name)
    return name
