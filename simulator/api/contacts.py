"""Asking WhatsApp for numbers."""

from aiohttp import web

from simulator import refusals
from simulator.api.guard import WORLD, reply


async def check_exists(request: web.Request) -> web.Response:
    """`chatId` is the form under which the number is registered; GOWS gives null when there is none."""
    world = request.app[WORLD]
    name = request.query.get("session", "")
    if not name:
        raise refusals.bad_request("Session name is required")
    session = await world.ready(name)
    phone = request.query.get("phone")
    if phone is None:
        raise refusals.EngineError("Cannot read properties of undefined (reading 'split')", name="TypeError")
    chat_id = world.directory.look_up(phone.partition("@")[0])
    if chat_id is not None:
        return reply(200, {"numberExists": True, "chatId": chat_id})
    missing = {"numberExists": False}
    return reply(200, missing | {"chatId": None} if session.engine.name == "GOWS" else missing)
