"""The control API under /control/: what a test does to phones, sessions and the network."""

import ipaddress
from typing import Any

from aiohttp import web

from simulator import receiving, refusals
from simulator.api.guard import WORLD, Handler, read_body, reply
from simulator.directory import Number
from simulator.engines import ENGINES
from simulator.faults import FaultRuleError
from simulator.session import ScanError, Session
from simulator.states import IllegalMoveError, Status


def local(handler: Handler) -> Handler:
    """No key, so loopback only; errors as `{"error": …}`."""

    async def guard(request: web.Request) -> web.StreamResponse:
        if not ipaddress.ip_address(request.remote or "0.0.0.0").is_loopback:  # noqa: S104 - compared, not bound
            return reply(403, {"error": "loopback only"})
        try:
            return await handler(request)
        except refusals.RefusedError as refusal:
            return reply(refusal.status, refusal.body)
        except FaultRuleError as error:
            return reply(400, {"error": str(error)})
        except (ScanError, IllegalMoveError) as error:
            return reply(409, {"error": str(error)})
        except KeyError as error:
            return reply(400, {"error": f"missing {error}"})

    return guard


async def read_state(request: web.Request) -> web.Response:
    """Sessions with their current QR, webhooks on their way, faults in force."""
    world = request.app[WORLD]
    sessions = [
        session.describe() | {"qr": session.qr, "phone": session.phone, "messages": len(session.messages)}
        for session in world.sessions.values()
    ]
    webhooks = {"pending": world.deliveries.pending, **world.deliveries.counts}
    return reply(
        200,
        {
            "sessions": sessions,
            "webhooks": webhooks,
            "deliveries": list(world.deliveries.recent),
            "faults": [rule.as_dict() for rule in world.faults.rules],
            "book": len(world.book),
            "time_scale": world.clock.scale,
        },
    )


async def read_book(request: web.Request) -> web.Response:
    """`?session= &chat_id= &since=` (epoch seconds) `&source=api|app|all`; api when not told."""
    query = request.query
    source = query.get("source", "api")
    found = request.app[WORLD].book.entries(
        session=query.get("session"),
        chat_id=query.get("chat_id"),
        since=float(query["since"]) if "since" in query else None,
        source=None if source == "all" else source,
    )
    return reply(200, found)


async def clear_book(request: web.Request) -> web.Response:
    return reply(200, {"removed": request.app[WORLD].book.clear()})


async def scan(request: web.Request) -> web.Response:
    """`{"phone", "qr"?, "push_name"?}`; 409 unless a QR is shown and, when given, it is this one."""
    body = await read_body(request)
    session = _session(request)
    session.scan(phone=body["phone"], push_name=body.get("push_name", "Simulator"), qr=body.get("qr"))
    return reply(200, session.describe())


async def unlink(request: web.Request) -> web.Response:
    """FAILED; with `{"revoke": false}` a restart is enough to mend it."""
    session = _session(request)
    session.unlink(revoke=bool((await read_body(request)).get("revoke", True)))
    return reply(200, session.describe())


async def drop(request: web.Request) -> web.Response:
    """STARTING; back by itself, or with `{"stay": true}` at `restore`."""
    session = _session(request)
    session.drop(stay=bool((await read_body(request)).get("stay")))
    return reply(200, session.describe())


async def restore(request: web.Request) -> web.Response:
    session = _session(request)
    session.restore()
    return reply(200, session.describe())


async def set_engine(request: web.Request) -> web.Response:
    """`{"engine": "GOWS"}`: the shapes of one session, from its next answer on."""
    engine = (await read_body(request))["engine"]
    if engine not in ENGINES:
        return reply(400, {"error": f"engine must be one of {', '.join(ENGINES)}"})
    session = request.app[WORLD].set_engine(request.match_info["session"], engine)
    return reply(200, session.describe())


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
    """`{"exists": bool, "chat_id"?}` for the phone in the path."""
    body = await read_body(request)
    number = Number(exists=bool(body.get("exists", True)), chat_id=body.get("chat_id"))
    request.app[WORLD].directory.put(request.match_info["phone"], number)
    return reply(200, {"exists": number.exists, "chat_id": number.chat_id})


async def inbound(request: web.Request) -> web.Response:
    """`{"session", "from", "text", "id"?, "push_name"?, "lid"?, "reply_to"?, "timestamp"?}`."""
    body = await read_body(request)
    world = request.app[WORLD]
    message = receiving.inbound(
        world,
        world.require(body["session"]),
        sender=body["from"],
        text=body["text"],
        message_id=body.get("id"),
        push_name=body.get("push_name"),
        as_lid=bool(body.get("lid")),
        reply_to=body.get("reply_to"),
        at=body.get("timestamp"),
    )
    return reply(201, {"id": message.full})


async def phone_sends(request: web.Request) -> web.Response:
    """`{"session", "to", "text", "id"?}`: typed on the session's own phone."""
    body = await read_body(request)
    world = request.app[WORLD]
    session = world.require(body["session"])
    if session.status is Status.STOPPED:
        raise refusals.wrong_status(session.name, session.status, (Status.WORKING,))
    message = receiving.phone_sends(world, session, to=body["to"], text=body["text"], message_id=body.get("id"))
    return reply(201, {"id": message.full})


def _session(request: web.Request) -> Session:
    return request.app[WORLD].require(request.match_info["session"])


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/control/state", read_state),
    ("GET", "/control/book", read_book),
    ("DELETE", "/control/book", clear_book),
    ("POST", "/control/sessions/{session}/scan", scan),
    ("POST", "/control/sessions/{session}/unlink", unlink),
    ("POST", "/control/sessions/{session}/drop", drop),
    ("POST", "/control/sessions/{session}/restore", restore),
    ("POST", "/control/sessions/{session}/engine", set_engine),
    ("GET", "/control/faults", list_faults),
    ("POST", "/control/faults", add_fault),
    ("DELETE", "/control/faults", remove_faults),
    ("DELETE", "/control/faults/{fault:\\d+}", remove_faults),
    ("PUT", "/control/numbers/{phone}", put_number),
    ("POST", "/control/inbound", inbound),
    ("POST", "/control/phone-sends", phone_sends),
]
