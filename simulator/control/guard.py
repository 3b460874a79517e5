"""What stands before every call of the control API."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from simulator import refusals
from simulator.api.guard import WORLD, Handler, reply
from simulator.composing import CompositionError
from simulator.faults import FaultRuleError
from simulator.session import ScanError, Session
from simulator.states import IllegalMoveError

Route = tuple[str, str, Handler]


class CommandError(ValueError):
    """A command that makes no sense; the text names the field."""


def local(handler: Handler) -> Handler:
    """No key, so loopback only, and from no other site's page; errors as `{"error": …}`."""

    async def guard(request: web.Request) -> web.StreamResponse:
        if not ipaddress.ip_address(request.remote or "0.0.0.0").is_loopback:  # noqa: S104 - compared, not bound
            return reply(403, {"error": "loopback only"})
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return reply(403, {"error": "not from another site"})
        try:
            return await handler(request)
        except refusals.RefusedError as refusal:
            return reply(refusal.status, refusal.body)
        except (FaultRuleError, CompositionError, CommandError) as error:
            return reply(400, {"error": str(error)})
        except (ScanError, IllegalMoveError) as error:
            return reply(409, {"error": str(error)})
        except KeyError as error:
            return reply(400, {"error": f"missing {error}"})

    return guard


def session_of(request: web.Request) -> Session:
    """The one in the path; raises WAHA's 404."""
    return request.app[WORLD].require(request.match_info["session"])


def session_named(request: web.Request, body: Mapping[str, Any]) -> Session:
    """The one that the body names; raises WAHA's 404."""
    return request.app[WORLD].require(text_of(body["session"], "session"))


def number_of(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CommandError(f"{name} must be a number")
    return value


def text_of(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise CommandError(f"{name} must be a text")
    return value


def optional_text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise CommandError(f"{name} must be a text")
    return value


def flag_of(body: Mapping[str, Any], name: str, *, otherwise: bool = False) -> bool:
    value = body.get(name, otherwise)
    if not isinstance(value, bool):
        raise CommandError(f"{name} must be true or false")
    return value


def choice_of(body: Mapping[str, Any], name: str, choices: Iterable[str], otherwise: str | None = None) -> str:
    value = body.get(name, otherwise)
    if not isinstance(value, str) or value not in choices:
        raise CommandError(f"{name} must be one of {', '.join(choices)}")
    return value


def phone_of(value: Any, name: str = "phone") -> str:
    """Digits alone, as in an address."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        raise CommandError(f"{name} must be a phone in digits, as 5511999990001")
    return value
