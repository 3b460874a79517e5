"""Pairing: the QR as a picture, as JSON or raw, and the pairing code."""

import base64
import io

import segno
from aiohttp import web

from simulator import refusals
from simulator.api.chatting import session_name
from simulator.api.guard import EMPTY_HEADERS, WORLD, read_body, reply
from simulator.files import sample
from simulator.states import Status

_BORDER, _SCALE = 4, 4


async def qr(request: web.Request) -> web.Response:
    """JSON only when `Accept` is exactly `application/json`; `format=raw` gives the value."""
    session = await request.app[WORLD].ready(request.match_info["session"], (Status.SCAN_QR_CODE,))
    value = session.qr
    if value is None:
        raise refusals.wrong_status(session.name, session.status, (Status.SCAN_QR_CODE,))
    if request.query.get("format") == "raw":
        return reply(200, {"value": value})
    picture = png(value)
    if request.headers.get("Accept") == "application/json":
        return reply(200, {"mimetype": "image/png", "data": base64.b64encode(picture).decode()})
    return web.Response(body=picture, headers=EMPTY_HEADERS | {"Content-Type": "image/png"})


async def request_code(request: web.Request) -> web.Response:
    """201 with a code, even without a phone number; NOWEB refuses a `method`."""
    session = request.app[WORLD].require_running(request.match_info["session"])
    body = await read_body(request)
    if session.status is not Status.SCAN_QR_CODE:
        raise refusals.unprocessable(
            f"Can request code only in SCAN_QR_CODE status. The current status is {session.status}"
        )
    if body.get("method") and session.engine.name == "NOWEB":
        raise refusals.unprocessable("NOWEB engine doesn't support any 'method', remove it and try again")
    phone = body.get("phoneNumber")
    return reply(201, {"code": session.request_code(phone if isinstance(phone, str) else "")})


async def screenshot(request: web.Request) -> web.Response:
    """The QR while one is shown; of a working session, WEBJS alone has a browser to show."""
    session = await request.app[WORLD].ready(session_name(request.query), (Status.SCAN_QR_CODE, Status.WORKING))
    if session.qr is not None:
        picture, mimetype = png(session.qr), "image/jpeg"  # so it says, though it is a PNG
    elif session.engine.name == "WEBJS":
        picture, mimetype = sample("image").data, "image/jpeg"
    else:
        raise refusals.unprocessable("Can not get screenshot for non chrome based engine.")
    if request.headers.get("Accept") == "application/json":
        return reply(200, {"mimetype": mimetype, "data": base64.b64encode(picture).decode()})
    return web.Response(body=picture, headers=EMPTY_HEADERS | {"Content-Type": mimetype})


def png(value: str) -> bytes:
    """A QR code as a picture."""
    out = io.BytesIO()
    segno.make(value, error="l", micro=False).save(out, kind="png", scale=_SCALE, border=_BORDER)
    return out.getvalue()
