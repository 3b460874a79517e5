"""Looking up messages."""

from aiohttp import web

from simulator import addresses, refusals
from simulator.api.guard import WORLD, reply


async def message_by_id(request: web.Request) -> web.Response:
    """By full or bare id, in its own chat only; 404 otherwise, 400 where NOWEB's store is off."""
    session = await request.app[WORLD].ready(request.match_info["session"])
    if not session.store_enabled:
        raise refusals.bad_request(refusals.STORE_OFF)
    chat_id = addresses.with_suffix(request.match_info["chat_id"])
    chat_id = addresses.to_public(chat_id) if chat_id.endswith("@s.whatsapp.net") else chat_id
    wanted = None if request.match_info["chat_id"] == "all" else chat_id
    message = session.messages.find(request.match_info["message_id"], chat_id=wanted)
    if message is None:
        raise refusals.not_found("Message not found")
    return reply(200, session.engine.stored(message, session.me or {}))
