"""A lean HTTP/1.1 client for webhooks: kept-alive connections, no time-out, as WAHA posts them.

Several webhooks follow each message, so their cost decides how much one core can simulate; a full
client library costs four times as much per request.
"""

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

CONNECTIONS_PER_ORIGIN = 256
IDLE_SECONDS = 4.0


class BrokenAnswerError(ConnectionError):
    """The other side closed, or answered what is no HTTP."""


class Reply:
    """A status and headers (names in lower case); the body is read and thrown away."""

    __slots__ = ("_head", "status")

    def __init__(self, head: bytes) -> None:
        self.status = int(head.split(b" ", 2)[1])
        self._head = head

    @property
    def headers(self) -> dict[str, str]:
        """Read when asked for: a webhook that is taken needs none of them."""
        pairs = (line.partition(":") for line in self._head.decode("latin-1").split("\r\n")[1:])
        return {name.lower(): value.strip() for name, _, value in pairs}


# What became of a request: the reply, or why there is none.
Done = Callable[[Reply | None, OSError | None], None]


@dataclass(frozen=True, slots=True)
class Origin:
    host: str
    port: int
    is_tls: bool


class HttpClient:
    """Posts concurrently; connections of one origin are reused, the freshest first."""

    def __init__(self) -> None:
        self._pools: dict[Origin, _Pool] = {}

    def submit(self, method: str, url: str, headers: Mapping[str, str], body: bytes, done: Done) -> None:
        """Send one request, redirects not followed; `done` hears of its end, never before this returns."""
        origin, first = _parse(method, url)
        lines = [first, *[f"{name}: {value}" for name, value in headers.items()]]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        lines.append("Accept: application/json, text/plain, */*\r\n\r\n")
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = _Pool(origin)
        pool.submit("\r\n".join(lines).encode() + body, done)

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request, one answer. Raises OSError when there is no answer."""
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def done(reply: Reply | None, error: OSError | None) -> None:
            if answered.done():
                return
            if reply is not None:
                answered.set_result(reply)
            else:
                answered.set_exception(error or BrokenAnswerError("no answer"))

        self.submit(method, url, headers, body, done)
        return await answered

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


class _Pool:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._waiting: deque[tuple[bytes, Done]] = deque()
        self._connecting: set[asyncio.Task[None]] = set()

    def submit(self, data: bytes, done: Done) -> None:
        connection = self._take_idle()
        if connection is not None:
            self._busy.add(connection)
            connection.send(data, done)
        else:
            self._waiting.append((data, done))
            if len(self._busy) + len(self._connecting) < CONNECTIONS_PER_ORIGIN:
                self._open()

    def close(self) -> None:
        self._waiting.clear()
        for task in self._connecting:
            task.cancel()
        for connection in [*self._idle, *self._busy]:
            connection.close()

    def released(self, connection: "_Connection") -> None:
        """Its exchange is over: the next in line takes it, or it waits."""
        self._busy.discard(connection)
        if not connection.is_open:
            if self._waiting:
                self._open()
        elif self._waiting:
            self._busy.add(connection)
            connection.send(*self._waiting.popleft())
        else:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)

    def _open(self) -> None:
        task = asyncio.get_running_loop().create_task(self._connect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self) -> None:
        """Open one more for the first in line; who is there when it fails hears why."""
        context = _unverified() if self._origin.is_tls else None
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(self), self._origin.host, self._origin.port, ssl=context
            )
        except OSError as error:
            if self._waiting:
                _, done = self._waiting.popleft()
                done(None, error)
        else:
            self.released(connection)

    def _take_idle(self) -> "_Connection | None":
        fresh_from = time.monotonic() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > fresh_from:
                return connection
            connection.close()
        return None


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, pool: _Pool) -> None:
        self.idle_since = 0.0
        self.is_open = False
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._done: Done | None = None

    def send(self, data: bytes, done: Done) -> None:
        assert self._transport is not None
        self._received = b""
        self._done = done
        self._transport.write(data)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._done is None:
            return
        try:
            head = _complete(self._received, ended=False)
        except ValueError as error:
            self.close()
            self._end(None, BrokenAnswerError(f"no HTTP: {error}"))
            return
        if head is not None:
            self._finish(head)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._done is None:
            return
        try:
            head = _complete(self._received, ended=True)
        except ValueError:
            head = None
        if head is not None:
            self._finish(head)
        else:
            self._end(None, error if isinstance(error, OSError) else BrokenAnswerError("closed without an answer"))

    def _finish(self, head: bytes) -> None:
        if _CLOSES.search(head):
            self.close()
        self._end(Reply(head), None)

    def _end(self, reply: Reply | None, error: OSError | None) -> None:
        done, self._done = self._done, None
        self._pool.released(self)
        if done is not None:
            done(reply, error)


_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


def _complete(received: bytes, *, ended: bool) -> bytes | None:
    """The head of an answer once all of it has come, else None; raises ValueError when it is no HTTP."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, body = received[:end], received[end + 4 :]
    found = _STATUS.match(head)
    if found is None:
        raise ValueError("no status line")
    status = int(found[1])
    if status < 200:
        return _complete(body, ended=ended)
    length = _LENGTH.search(head)
    if status in (204, 304):
        is_whole = True
    elif length is not None:
        is_whole = len(body) >= int(length[1])
    elif _CHUNKED.search(head):
        is_whole = body.endswith(b"0\r\n\r\n")
    else:
        is_whole = ended
    return head if is_whole else None


@lru_cache(maxsize=256)
def _parse(method: str, url: str) -> tuple[Origin, str]:
    """Where to connect, and the first lines of the request."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    origin = Origin(parts.hostname or "", parts.port or (443 if is_tls else 80), is_tls)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return origin, f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}"


def _unverified() -> ssl.SSLContext:
    """WAHA verifies no certificate of a webhook."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
