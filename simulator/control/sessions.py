"""What happens to a session: scans, lost sockets, restrictions, and whom it knows."""

from aiohttp import web

from simulator import addresses
from simulator.api.auth import png
from simulator.api.guard import EMPTY_HEADERS, WORLD, read_body, reply
from simulator.control.guard import (
    CommandError,
    Route,
    choice_of,
    flag_of,
    number_of,
    optional_text,
    phone_of,
    session_of,
    text_of,
)
from simulator.engines import ENGINES
from simulator.restriction import HOWS, NO_CAPPING, Restriction
from simulator.session import ScanError


async def scan(request: web.Request) -> web.Response:
    """`{"phone", "qr"?, "push_name"?}`; 409 unless a QR is shown and, when given, it is this one."""
    body = await read_body(request)
    session = session_of(request)
    session.scan(
        phone=phone_of(body["phone"]),
        push_name=optional_text(body, "push_name") or "Simulator",
        qr=optional_text(body, "qr"),
    )
    return reply(200, session.describe())


async def qr_picture(request: web.Request) -> web.Response:
    """The QR shown now, for the page."""
    value = session_of(request).qr
    if value is None:
        raise ScanError("no QR is shown now")
    return web.Response(
        body=png(value), headers=EMPTY_HEADERS | {"Content-Type": "image/png", "Cache-Control": "no-store"}
    )


async def unlink(request: web.Request) -> web.Response:
    """FAILED; with `{"revoke": false}` a restart is enough to mend it."""
    session = session_of(request)
    session.unlink(revoke=flag_of(await read_body(request), "revoke", otherwise=True))
    return reply(200, session.describe())


async def drop(request: web.Request) -> web.Response:
    """STARTING; back by itself, or with `{"stay": true}` at `restore`."""
    session = session_of(request)
    session.drop(stay=flag_of(await read_body(request), "stay"))
    return reply(200, session.describe())


async def restore(request: web.Request) -> web.Response:
    session = session_of(request)
    session.restore()
    return reply(200, session.describe())


async def set_engine(request: web.Request) -> web.Response:
    """`{"engine": "GOWS"}`: the shapes of one session, from its next answer on."""
    engine = choice_of(await read_body(request), "engine", ENGINES)
    session = request.app[WORLD].set_engine(request.match_info["session"], engine)
    return reply(200, session.describe())


async def restrict(request: web.Request) -> web.Response:
    """`{"seconds"?, "enforcement"?, "replies_pass"?, "how"?}`: strangers can be written to no more."""
    body = await read_body(request)
    seconds = body.get("seconds")
    until = None if seconds is None else request.app[WORLD].clock.now() + number_of(seconds, "seconds")
    session = session_of(request)
    session.restriction = Restriction(
        enforcement=text_of(body.get("enforcement", "DEFAULT"), "enforcement"),
        until=until,
        replies_pass=flag_of(body, "replies_pass", otherwise=True),
        how=None if body.get("how") is None else choice_of(body, "how", HOWS),
    )
    return reply(200, session.restriction.as_timelock(request.app[WORLD].clock.now()))


async def lift(request: web.Request) -> web.Response:
    """Ends a restriction."""
    session = session_of(request)
    was_restricted, session.restriction = session.restriction is not None, None
    return reply(200, {"removed": int(was_restricted)})


async def cap(request: web.Request) -> web.Response:
    """What `GET …/capping` tells; only the fields given are changed."""
    body = await read_body(request)
    unknown = set(body) - set(NO_CAPPING)
    if unknown:
        raise CommandError(f"unknown: {', '.join(sorted(unknown))}")
    session = session_of(request)
    session.capping |= body
    return reply(200, session.capping)


async def save_contact(request: web.Request) -> web.Response:
    """`{"name"?, "push_name"?, "lid"?}`: someone in the address book; `lid` true draws the hidden id."""
    body = await read_body(request)
    phone = phone_of(request.match_info["phone"])
    draws = body.get("lid") is True
    person = session_of(request).people.save(
        addresses.with_suffix(phone),
        name=optional_text(body, "name"),
        push_name=optional_text(body, "push_name"),
        lid=request.app[WORLD].directory.lid_of(phone) if draws else optional_text(body, "lid"),
    )
    return reply(
        200, {"chat_id": person.chat_id, "lid": person.lid, "name": person.name, "push_name": person.push_name}
    )


async def learn_lid(request: web.Request) -> web.Response:
    """`{"phone", "lid"?}`: from now on the account knows whose hidden id this is."""
    body = await read_body(request)
    phone = phone_of(body["phone"])
    lid = optional_text(body, "lid") or request.app[WORLD].directory.lid_of(phone)
    session_of(request).people.learn(lid, addresses.with_suffix(phone))
    return reply(200, {"lid": lid, "pn": addresses.with_suffix(phone)})


async def forget_lids(request: web.Request) -> web.Response:
    return reply(200, {"removed": session_of(request).people.forget_lids()})


ROUTES: list[Route] = [
    ("POST", "/control/sessions/{session}/scan", scan),
    ("GET", "/control/sessions/{session}/qr", qr_picture),
    ("POST", "/control/sessions/{session}/unlink", unlink),
    ("POST", "/control/sessions/{session}/drop", drop),
    ("POST", "/control/sessions/{session}/restore", restore),
    ("POST", "/control/sessions/{session}/engine", set_engine),
    ("POST", "/control/sessions/{session}/restrict", restrict),
    ("DELETE", "/control/sessions/{session}/restrict", lift),
    ("PUT", "/control/sessions/{session}/capping", cap),
    ("PUT", "/control/sessions/{session}/contacts/{phone}", save_contact),
    ("POST", "/control/sessions/{session}/lids", learn_lid),
    ("DELETE", "/control/sessions/{session}/lids", forget_lids),
]
