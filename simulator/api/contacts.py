"""Asking WhatsApp for numbers, and the address book with its hidden ids."""

from typing import Any

from aiohttp import web

from simulator import addresses, refusals
from simulator.api.chatting import session_name
from simulator.api.guard import WORLD, read_body, reply
from simulator.session import Session

PICTURE = "https://pps.whatsapp.net/v/t61.24694-24/SIM.jpg"
_MOST = 2**31


async def check_exists(request: web.Request) -> web.Response:
    """`chatId` is the form under which the number is registered; GOWS gives null when there is none."""
    world = request.app[WORLD]
    session = await world.ready(session_name(request.query))
    phone = request.query.get("phone")
    if phone is None:
        raise refusals.EngineError("Cannot read properties of undefined (reading 'split')", name="TypeError")
    chat_id = world.directory.look_up(phone.partition("@")[0])
    if chat_id is not None:
        return reply(200, {"numberExists": True, "chatId": chat_id})
    missing = {"numberExists": False}
    return reply(200, missing | {"chatId": None} if session.engine.name == "GOWS" else missing)


async def list_contacts(request: web.Request) -> web.Response:
    session = await request.app[WORLD].ready(session_name(request.query))
    people = session.people.all()
    if request.query.get("sortBy") == "name":
        people.sort(key=lambda person: person.name or "", reverse=request.query.get("sortOrder") == "desc")
    return reply(200, [session.engine.contact(person) for person in people[_window(request)]])


async def read_contact(request: web.Request) -> web.Response:
    """Nothing at all for someone who is not known."""
    session = await request.app[WORLD].ready(session_name(request.query))
    return _contact(session, request.query.get("contactId", ""))


async def read_contact_by_path(request: web.Request) -> web.Response:
    session = await request.app[WORLD].ready(request.match_info["session"])
    return _contact(session, request.match_info["chat_id"])


async def save_contact(request: web.Request) -> web.Response:
    """`{"firstName", "lastName"}`: into the address book of the account."""
    body = await read_body(request)
    session = await request.app[WORLD].ready(request.match_info["session"])
    names = [body.get("firstName"), body.get("lastName")]
    chat_id = addresses.to_public(addresses.with_suffix(request.match_info["chat_id"]))
    session.people.save(chat_id, name=" ".join(name for name in names if isinstance(name, str)).strip())
    return reply(200, {"success": True})


async def about(request: web.Request) -> web.Response:
    """NOWEB has no such call."""
    world = request.app[WORLD]
    session = await world.ready(session_name(request.query))
    if session.engine.name == "NOWEB":
        raise refusals.not_implemented()
    number = world.directory.get(addresses.phone_of(request.query.get("contactId", "")))
    return reply(200, {"about": number.about if number else None})


async def profile_picture(request: web.Request) -> web.Response:
    world = request.app[WORLD]
    await world.ready(session_name(request.query))
    number = world.directory.get(addresses.phone_of(request.query.get("contactId", "")))
    return reply(200, {"profilePictureURL": (number.picture if number else None) or PICTURE})


# -- hidden ids ---------------------------------------------------------------------------------------


async def list_lids(request: web.Request) -> web.Response:
    session = await request.app[WORLD].ready(request.match_info["session"])
    return reply(200, [{"lid": lid, "pn": pn} for lid, pn in session.people.lids()[_window(request)]])


async def count_lids(request: web.Request) -> web.Response:
    session = await request.app[WORLD].ready(request.match_info["session"])
    return reply(200, {"count": len(session.people.lids())})


async def phone_of_lid(request: web.Request) -> web.Response:
    """`pn` is null while the account has not learnt whose it is."""
    session = await request.app[WORLD].ready(request.match_info["session"])
    given = request.match_info["lid"]
    lid = given if "@" in given else f"{given}@lid"
    if not lid.endswith("@lid"):
        raise refusals.unprocessable("Invalid LID - it must end with @lid")
    return reply(200, {"lid": lid, "pn": session.people.pn_of(lid)})


async def lid_of_phone(request: web.Request) -> web.Response:
    session = await request.app[WORLD].ready(request.match_info["session"])
    pn = addresses.to_public(addresses.with_suffix(request.match_info["phone"]))
    return reply(200, {"lid": session.people.lid_of(pn), "pn": pn})


def _contact(session: Session, given: str) -> web.Response:
    person = session.people.find(addresses.to_public(addresses.with_suffix(given)))
    shown: dict[str, Any] | None = None if person is None else session.engine.contact(person)
    return reply(200, shown)


def _window(request: web.Request) -> slice:
    """`offset` and `limit`; what is no number counts as not given."""
    offset, limit = (
        int(value) if value.isdigit() else otherwise
        for value, otherwise in ((request.query.get("offset", ""), 0), (request.query.get("limit", ""), _MOST))
    )
    return slice(offset, offset + limit)
