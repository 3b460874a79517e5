"""What stands before every call: the key, the faults, and the shape of what goes wrong."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from simulator import refusals
from simulator.book import Entry
from simulator.envelope import dumps
from simulator.faults import FINE, Outcome, Plan
from simulator.options import KEY_IN_QUERY_SINCE
from simulator.world import World

WORLD = web.AppKey("world", World)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {"Access-Control-Allow-Origin": "*", "Content-Type": "application/json; charset=utf-8"}
EMPTY_HEADERS = {"Access-Control-Allow-Origin": "*"}
_PLAN, _ENTRY, _ARRIVED = "plan", "entry", "arrived"


def reply(status: int, body: Any) -> web.Response:
    """JSON as WAHA writes it; None is an empty body without a content type."""
    if body is None:
        return web.Response(status=status, headers=EMPTY_HEADERS)
    return web.Response(status=status, body=dumps(body), headers=HEADERS)


async def read_body(request: web.Request) -> dict[str, Any]:
    """The body as an object; forms are read too. Raises the 400 of a body that is no JSON."""
    raw = await request.read()
    if not raw:
        return {}
    if request.content_type == "application/x-www-form-urlencoded":
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
    try:
        body = _loads(raw)
    except (ValueError, RecursionError) as error:
        raise refusals.bad_request(f"Unexpected token in JSON: {error}") from None
    if not isinstance(body, dict):
        raise refusals.bad_request("Unexpected token in JSON: no object")
    return body


def _loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except ValueError:  # what JavaScript takes besides: half an emoji, numbers beyond 64 bits
        return json.loads(raw, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def plan_of(request: web.Request) -> Plan:
    """What the faults do to this call."""
    plan: Plan = request.get(_PLAN, FINE)
    return plan


def arrived_at(request: web.Request) -> float:
    """Epoch seconds; a delay on command comes after it."""
    at: float = request.get(_ARRIVED) or time.time()
    return at


def remember(request: web.Request, entry: Entry) -> None:
    """Have the way this call is answered written to the book."""
    request[_ENTRY] = entry


def guarded(op: str, handler: Handler, *, needs_key: bool = True) -> Handler:
    """Wrap a handler; `op` is the name under which faults find it."""

    async def guard(request: web.Request) -> web.StreamResponse:
        world = request.app[WORLD]
        if needs_key and not _has_key(request, world):
            return _refuse(refusals.unauthorized())
        if world.faults.rules:
            response, how = await _troubled(op, handler, request, world)
        else:
            response = await _answer(handler, request, world)
            how = ""
        entry: Entry | None = request.get(_ENTRY)
        if entry is not None:
            world.book.answer(entry, how or str(response.status))
        return response

    return guard


def _has_key(request: web.Request, world: World) -> bool:
    wanted = world.options.api_key
    if request.headers.get("X-Api-Key") == wanted:
        return True
    in_query = world.options.version_numbers >= KEY_IN_QUERY_SINCE
    return in_query and request.query.get("x-api-key") == wanted


async def _answer(handler: Handler, request: web.Request, world: World) -> web.StreamResponse:
    try:
        return await handler(request)
    except refusals.RefusedError as refusal:
        return _refuse(refusal)
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - the edge: WAHA answers all of them so
        return await _internal_error(error, request, world)


def _refuse(refusal: refusals.RefusedError) -> web.Response:
    return reply(refusal.status, refusal.body)


async def _internal_error(error: Exception, request: web.Request, world: World) -> web.Response:
    try:
        body: Any = await read_body(request) if request.body_exists else None
    except refusals.RefusedError:
        body = None
    shown = refusals.internal_error(
        error,
        path=request.path_qs,
        method=request.method,
        body=body,
        query=dict(request.query),
        version=world.environment(),
    )
    return reply(500, shown)


async def _troubled(op: str, handler: Handler, request: web.Request, world: World) -> tuple[web.StreamResponse, str]:
    """One call under faults: the response, and how it is named in the book ("" by its status)."""
    request[_ARRIVED] = time.time()
    plan = request[_PLAN] = await _plan(op, request, world)
    outcome = plan.outcome
    if plan.delay_before:
        await asyncio.sleep(plan.delay_before)
    if outcome is not None and not outcome.acted:
        return await _fail(outcome, None, request)
    response = await _answer(handler, request, world)
    if plan.delay_after:
        await asyncio.sleep(plan.delay_after)
    if outcome is not None:
        return await _fail(outcome, response, request)
    return response, ""


async def _plan(op: str, request: web.Request, world: World) -> Plan:
    try:
        body = await read_body(request) if request.body_exists else {}
    except refusals.RefusedError:
        body = {}
    session = request.match_info.get("session") or body.get("session") or request.query.get("session")
    return world.faults.plan(op=op, session=session, chat_id=body.get("chatId"))


async def _fail(
    outcome: Outcome, response: web.StreamResponse | None, request: web.Request
) -> tuple[web.StreamResponse, str]:
    parameters = outcome.parameters
    match outcome.kind:
        case "status":
            failed = await _failed_status(parameters, request)
            if parameters["retry_after"]:
                failed.headers["Retry-After"] = str(parameters["retry_after"])
            return failed, ""
        case "engine_error":
            error = refusals.EngineError(parameters["message"], extra=parameters["extra"])
            return await _internal_error(error, request, request.app[WORLD]), ""
        case "reset" | "close":
            _cut(request, hard=outcome.kind == "reset")
            return web.Response(status=500), outcome.kind
        case "hang":
            await asyncio.sleep(parameters["seconds"])
            _cut(request, hard=False)
            return web.Response(status=500), "hang"
        case "garbage":
            return web.Response(status=HTTPStatus.CREATED, body=b'{"key":{"remoteJid":"', headers=HEADERS), "garbage"
        case "trickle":
            return await _trickle(response, parameters["seconds"], request), "trickle"
        case _:
            return reply(HTTPStatus.CREATED, None), "empty"


async def _failed_status(parameters: dict[str, Any], request: web.Request) -> web.Response:
    """The status asked for, with the body given or else the one WAHA sends with it."""
    status, body = parameters["status"], parameters["body"]
    if body:
        return reply(status, body)
    if status == HTTPStatus.UNAUTHORIZED:
        return _refuse(refusals.unauthorized())
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return await _internal_error(refusals.connection_closed(), request, request.app[WORLD])
    return reply(status, {"statusCode": status, "message": HTTPStatus(status).phrase})


def _cut(request: web.Request, *, hard: bool) -> None:
    """End the connection: hard sends a reset, otherwise an end of file."""
    transport = request.transport
    if transport is None:
        return
    if hard:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


async def _trickle(response: web.StreamResponse | None, seconds: float, request: web.Request) -> web.StreamResponse:
    """The same answer, one byte at a time over about `seconds`."""
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b"{}"
    slow = web.StreamResponse(status=response.status if response else 201, headers=HEADERS)
    slow.content_length = len(body)
    await slow.prepare(request)
    for number in range(len(body)):
        await slow.write(body[number : number + 1])
        await asyncio.sleep(seconds / len(body))
    await slow.write_eof()
    return slow
