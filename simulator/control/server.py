"""The server as a whole: its state, the book, faults, numbers, files, and its death."""

from aiohttp import web

from simulator.api import files
from simulator.api.guard import WORLD, read_body, reply
from simulator.control.guard import CommandError, Route, flag_of, optional_text
from simulator.directory import Number


async def read_state(request: web.Request) -> web.Response:
    """Sessions with their current QR, webhooks on their way, faults in force; `?brief=true` leaves these out."""
    world = request.app[WORLD]
    sessions = [
        session.describe() | {"qr": session.qr, "phone": session.phone, "messages": len(session.messages)}
        for session in world.sessions.values()
    ]
    found = {
        "sessions": sessions,
        "webhooks": {"pending": world.deliveries.pending, **world.deliveries.counts},
        "book": len(world.book),
        "time_scale": world.clock.scale,
        "version": world.options.version,
    }
    if request.query.get("brief") != "true":
        rules = [rule.as_dict() for rule in world.faults.rules]
        found |= {"deliveries": list(world.deliveries.recent), "faults": rules}
    return reply(200, found)


async def read_book(request: web.Request) -> web.Response:
    """`?session= &chat_id= &since=` (epoch seconds) `&source=api|app|typing|all`; api when not told."""
    query = request.query
    source = query.get("source", "api")
    try:
        since = float(query["since"]) if "since" in query else None
    except ValueError:
        raise CommandError("since must be a number") from None
    found = request.app[WORLD].book.entries(
        session=query.get("session"),
        chat_id=query.get("chat_id"),
        since=since,
        source=None if source == "all" else source,
    )
    return reply(200, found)


async def clear_book(request: web.Request) -> web.Response:
    return reply(200, {"removed": request.app[WORLD].book.clear()})


async def add_fault(request: web.Request) -> web.Response:
    rule = request.app[WORLD].faults.add(await read_body(request))
    return reply(201, rule.as_dict())


async def list_faults(request: web.Request) -> web.Response:
    return reply(200, [rule.as_dict() for rule in request.app[WORLD].faults.rules])


async def remove_faults(request: web.Request) -> web.Response:
    """All, or the one in the path."""
    found = request.match_info.get("fault")
    return reply(200, {"removed": request.app[WORLD].faults.remove(int(found) if found else None)})


async def put_number(request: web.Request) -> web.Response:
    """`{"exists", "chat_id"?, "lid"?, "picture"?, "about"?}` for the phone in the path."""
    body = await read_body(request)
    number = Number(
        exists=flag_of(body, "exists", otherwise=True),
        chat_id=optional_text(body, "chat_id"),
        lid=optional_text(body, "lid"),
        picture=optional_text(body, "picture"),
        about=optional_text(body, "about"),
    )
    request.app[WORLD].directory.put(request.match_info["phone"], number)
    return reply(200, {"exists": number.exists, "chat_id": number.chat_id, "lid": number.lid})


async def restart(request: web.Request) -> web.Response:
    """As when WAHA's process dies and comes back: webhooks on their way are lost, sessions start again."""
    world = request.app[WORLD]
    lost = world.deliveries.pending
    world.crash()
    return reply(200, {"lost_webhooks": lost})


async def reset(request: web.Request) -> web.Response:
    """As a server just set up: sessions, faults, numbers, files and the book are gone."""
    request.app[WORLD].reset()
    return reply(200, {})


async def read_file(request: web.Request) -> web.Response:
    """As WAHA serves it, without a key: for the page. What someone sent runs no script here."""
    response = await files.read(request)
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


async def remove_files(request: web.Request) -> web.Response:
    """One file of a session or all, as when WAHA has cleaned up."""
    match = request.match_info
    return reply(200, {"removed": request.app[WORLD].files.remove(match["session"], match.get("name"))})


ROUTES: list[Route] = [
    ("GET", "/control/state", read_state),
    ("GET", "/control/book", read_book),
    ("DELETE", "/control/book", clear_book),
    ("GET", "/control/faults", list_faults),
    ("POST", "/control/faults", add_fault),
    ("DELETE", "/control/faults", remove_faults),
    ("DELETE", "/control/faults/{fault:\\d+}", remove_faults),
    ("PUT", "/control/numbers/{phone}", put_number),
    ("POST", "/control/restart", restart),
    ("POST", "/control/reset", reset),
    ("GET", "/control/files/{session}/{name}", read_file),
    ("DELETE", "/control/files/{session}", remove_files),
    ("DELETE", "/control/files/{session}/{name}", remove_files),
]
