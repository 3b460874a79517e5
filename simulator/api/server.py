"""Health and version."""

import asyncio

from aiohttp import web

from simulator import refusals
from simulator.api.guard import WORLD, reply

RESTART_SECONDS = 1.0


async def ping(request: web.Request) -> web.Response:  # noqa: ARG001 - a handler's shape
    return reply(200, {"message": "pong"})


async def health(request: web.Request) -> web.Response:
    """Plus only before 2026.6.1."""
    options = request.app[WORLD].options
    if options.is_restricted:
        raise refusals.unprocessable(refusals.PLUS_ONLY.format(engine=options.engine))
    info = {name: {"status": "up"} for name in ("mediaFiles.space", "sessionsFiles.space")}
    return reply(200, {"status": "ok", "info": info, "error": {}, "details": info})


async def version(request: web.Request) -> web.Response:
    return reply(200, request.app[WORLD].environment())


async def status(request: web.Request) -> web.Response:
    world = request.app[WORLD]
    return reply(
        200,
        {
            "startTimestamp": world.started_ms,
            "uptime": world.clock.now_ms() - world.started_ms,
            "worker": {"id": ""},
        },
    )


async def environment(request: web.Request) -> web.Response:
    """WAHA's own settings; with `?all=true` those of the process, too."""
    world = request.app[WORLD]
    options = world.options
    found = {
        "WAHA_BASE_URL": options.base_url,
        "WHATSAPP_DEFAULT_ENGINE": options.engine,
        "WHATSAPP_FILES_LIFETIME": f"{options.files_lifetime:g}",
    }
    return reply(200, found | ({"PATH": "/usr/bin"} if request.query.get("all", "").lower() == "true" else {}))


async def stop(request: web.Request) -> web.Response:
    """The container ends, and whoever runs it starts it again."""
    world = request.app[WORLD]
    asyncio.get_running_loop().call_later(world.clock.scaled(RESTART_SECONDS), world.crash)
    return reply(201, {"stopping": True})


async def unknown(request: web.Request) -> web.Response:
    raise refusals.not_found(f"Cannot {request.method} {request.path}")
