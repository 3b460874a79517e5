"""Health and version."""

from aiohttp import web

from simulator import refusals
from simulator.api.guard import WORLD, reply


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


async def unknown(request: web.Request) -> web.Response:
    raise refusals.not_found(f"Cannot {request.method} {request.path}")
