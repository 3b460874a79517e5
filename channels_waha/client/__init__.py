"""The one HTTP client of this room: a request, its answer, and what an answer that never came proves.

Nothing of a request is logged or put into an exception: paths hold phone numbers, bodies what people write,
headers the key. WAHA's 500 echoes the request's body, so answers are not quoted either.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any

import requests
from django.conf import settings
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError

from channels_waha.client import transport
from channels_waha.client.transport import Exchange, TooLate
from messaging.adapters import ChannelError, Fault, Sent

CONNECT_SECONDS = 2.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_RETRY_AFTER = 3600.0
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Server:
    """A WAHA. ``base_url`` without a slash at its end."""

    base_url: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What WAHA said, whole. ``retry_after``: seconds, where it names them."""

    status: int
    body: bytes = field(repr=False)
    retry_after: float | None = None

    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def object(self) -> dict[str, Any]:
        """The body as a JSON object; empty where it is none."""
        found = self.json()
        return found if isinstance(found, dict) else {}


def default_server() -> Server:
    """The server of the environment; raises ChannelError where there is none."""
    if not settings.WAHA_BASE_URL:
        raise ChannelError("waha_not_configured", sent=Sent.NO, fault=Fault.GATEWAY, detail="WAHA_BASE_URL is empty")
    return Server(settings.WAHA_BASE_URL, settings.WAHA_API_KEY)


def call(
    server: Server,
    method: str,
    path: str,
    *,
    deadline: float,
    start_by: float | None = None,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
    accept: str = "application/json",
) -> Answer:
    """One request, one answer, whatever its status. Never repeated, no redirect followed.

    ``path`` begins with a slash and is escaped; both times are monotonic: past ``start_by`` nothing is
    written, ``deadline`` bounds connecting, writing and reading together. Raises ChannelError where no whole
    answer came, its ``sent`` telling whether the request may have been read.
    """
    exchange = Exchange(start_by=deadline if start_by is None else start_by, deadline=deadline)
    try:
        return _perform(server, exchange, method, path, body=body, query=query, accept=accept)
    except TooLate:
        failure = ChannelError("too_late", sent=Sent.NO, fault=Fault.GATEWAY)
    except (requests.RequestException, HTTPError, HTTPException, OSError, ValueError) as error:
        failure = _failure(error, exchange)
    # Outside of the handler: the errors of requests carry the request, its key and its text, with them.
    raise failure


def _perform(
    server: Server,
    exchange: Exchange,
    method: str,
    path: str,
    *,
    body: Mapping[str, Any] | None,
    query: Mapping[str, str] | None,
    accept: str,
) -> Answer:
    now = time.monotonic()
    connect_by = min(now + CONNECT_SECONDS, exchange.start_by, exchange.deadline)
    if connect_by <= now:
        raise TooLate(TooLate.__doc__)
    headers = {"X-Api-Key": server.api_key, "Accept": accept}
    if body is not None:
        headers["Content-Type"] = "application/json"
    with transport.session_of(exchange).request(
        method,
        server.base_url + path,
        params=query,
        data=None if body is None else json.dumps(body).encode("ascii"),
        headers=headers,
        timeout=(connect_by - now, exchange.deadline - now),
        allow_redirects=False,
        stream=True,
    ) as response:
        return Answer(response.status_code, _read(response), _retry_after(response.headers.get("Retry-After")))


def _read(response: requests.Response) -> bytes:
    """The whole body; an announced length that does not come is an error, and so is one without an end."""
    read = bytearray()
    for chunk in response.iter_content(_CHUNK):
        read += chunk
        if len(read) > MAX_ANSWER_BYTES:
            raise HTTPException("the answer is too large")
    return bytes(read)


def _failure(error: Exception, exchange: Exchange) -> ChannelError:
    """What a failed exchange proves: before its first byte nothing was sent, after it nobody knows."""
    if exchange.has_begun:
        code = "waha_timeout" if _is_timeout(error, exchange) else "waha_connection_lost"
        return ChannelError(code, sent=Sent.MAYBE, fault=Fault.GATEWAY, detail=type(error).__name__)
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", inner)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        code = "waha_connect_timeout"
    elif isinstance(error, requests.exceptions.SSLError):
        code = "waha_tls_failed"
    elif isinstance(reason, NameResolutionError):
        code = "waha_unresolved"
    elif isinstance(reason, NewConnectionError):
        code = "waha_refused"
    else:
        code = "waha_unreachable"
    return ChannelError(code, sent=Sent.NO, fault=Fault.GATEWAY, detail=type(error).__name__)


def _is_timeout(error: Exception, exchange: Exchange) -> bool:
    return isinstance(error, requests.Timeout | TimeoutError) or time.monotonic() >= exchange.deadline


def _retry_after(value: str | None) -> float | None:
    """Seconds, from either form of the header; at most an hour."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _MAX_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    zoned = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((zoned - datetime.now(UTC)).total_seconds(), 0.0), _MAX_RETRY_AFTER)
