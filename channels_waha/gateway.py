"""WAHA's calls about sessions. Each raises ChannelError; none runs inside a transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from django.conf import settings

from channels_waha import client, refusals, values
from channels_waha.client import Answer, Server
from messaging.adapters import ChannelError, Fault, Sent

# A read of a session that is in another state waits up to 15 s inside WAHA.
READ_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as WAHA shows it. ``config``: None where it has none."""

    name: str
    status: str
    me: dict[str, Any] | None = field(default=None, repr=False)
    config: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """``engine`` in WAHA's words: NOWEB, GOWS, WEBJS."""

    version: str
    engine: str


def server_info(server: Server) -> ServerInfo:
    found = _get(server, "/api/server/version").object()
    return ServerInfo(values.word(found.get("version"), 32), values.word(found.get("engine"), 16))


def all_sessions(server: Server) -> dict[str, Seen]:
    """Every session of a server by name, the stopped ones too."""
    found = _get(server, "/api/sessions", {"all": "true"}).json()
    if not isinstance(found, list):
        raise _broken()
    seen = [_seen(item) for item in found if isinstance(item, dict)]
    return {session.name: session for session in seen}


def read(server: Server, name: str) -> Seen | None:
    """One session; None where WAHA does not know it."""
    answer = _ask(server, "GET", f"/api/sessions/{_part(name)}", seconds=READ_SECONDS)
    return None if answer.status == 404 else _seen(refusals.check(answer).object())


def create(server: Server, name: str, config: Mapping[str, Any]) -> Seen | None:
    """Create and start a session; None where the name exists already."""
    body = {"name": name, "start": True, "config": config}
    answer = _ask(server, "POST", "/api/sessions", body)
    message = answer.object().get("message") if answer.status == 422 else None
    if isinstance(message, str) and "already exists" in message:
        return None
    return _seen(refusals.check(answer).object(), name=name)


def update(server: Server, name: str, config: Mapping[str, Any]) -> Seen:
    """Replace a session's configuration; it is restarted if it runs."""
    answer = _ask(server, "PUT", f"/api/sessions/{_part(name)}", {"config": config})
    return _seen(refusals.check(answer).object(), name=name)


def start(server: Server, name: str) -> None:
    """Start a stopped session; fine where it is started."""
    answer = _ask(server, "POST", f"/api/sessions/{_part(name)}/start")
    message = answer.object().get("message") if answer.status == 422 else None
    if not (isinstance(message, str) and "already started" in message):
        refusals.check(answer)


def stop(server: Server, name: str) -> None:
    """Stop a session; its link to the phone is kept."""
    refusals.check(_ask(server, "POST", f"/api/sessions/{_part(name)}/stop"))


def restart(server: Server, name: str) -> None:
    """The way out of FAILED, where ``start`` is refused."""
    refusals.check(_ask(server, "POST", f"/api/sessions/{_part(name)}/restart"))


def logout(server: Server, name: str) -> None:
    """Unlink the phone; a session that ran starts again and shows a new QR code."""
    refusals.check(_ask(server, "POST", f"/api/sessions/{_part(name)}/logout"))


def qr_png(server: Server, name: str) -> bytes:
    """The QR code as a picture. Ask only in SCAN_QR_CODE: elsewhere WAHA blocks for 10 s first."""
    return _get(server, f"/api/{_part(name)}/auth/qr", {"format": "image"}, accept="image/png").body


def qr_value(server: Server, name: str) -> str:
    """What the QR code says."""
    value = _get(server, f"/api/{_part(name)}/auth/qr", {"format": "raw"}).object().get("value")
    if not isinstance(value, str) or not value:
        raise _broken()
    return value


def _get(
    server: Server, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
) -> Answer:
    deadline = time.monotonic() + READ_SECONDS
    answer = client.call(server, "GET", path, query=query, accept=accept, deadline=deadline)
    return refusals.check(answer)


def _ask(
    server: Server, method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float | None = None
) -> Answer:
    deadline = time.monotonic() + (seconds or settings.WAHA_LIFECYCLE_TIMEOUT_SECONDS)
    return client.call(server, method, path, body=body, deadline=deadline)


def _seen(found: dict[str, Any], *, name: str = "") -> Seen:
    """A SessionDTO; a status that is absent is read as STARTING (old WAHA answers an update with nothing)."""
    me, config = found.get("me"), found.get("config")
    return Seen(
        name=values.text(found.get("name")) or name,
        status=values.word(found.get("status"), 40) or "STARTING",
        me=me if isinstance(me, dict) else None,
        config=config if isinstance(config, dict) else None,
    )


def _part(name: str) -> str:
    return quote(name, safe="")


def _broken() -> ChannelError:
    return ChannelError("waha_broken_answer", sent=Sent.MAYBE, fault=Fault.GATEWAY)
