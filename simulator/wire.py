"""A lean HTTP/1.1 client for webhooks: kept-alive connections, no time-out, as WAHA posts them.

Several webhooks follow each message, so their cost decides how much one core can simulate; a full
client library costs four times as much per request.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

CONNECTIONS_PER_ORIGIN = 256
IDLE_SECONDS = 4.0


class BrokenAnswerError(ConnectionError):
    """The other side closed, or answered what is no HTTP."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and headers (names in lower case); the body is read and thrown away."""

    status: int
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Origin:
    host: str
    port: int
    is_tls: bool


class HttpClient:
    """Posts concurrently; connections of one origin are reused, the freshest first."""

    def __init__(self) -> None:
        self._pools: dict[Origin, _Pool] = {}

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request, one answer, redirects not followed. Raises OSError when there is no answer."""
        origin, target, host = _parse(url)
        lines = [f"{method} {target} HTTP/1.1\r\nHost: {host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        lines.append("Accept: application/json, text/plain, */*\r\n\r\n")
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = _Pool(origin)
        return await pool.exchange("\r\n".join(lines).encode() + body)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


class _Pool:
    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._slots = asyncio.Semaphore(CONNECTIONS_PER_ORIGIN)
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()

    async def exchange(self, data: bytes) -> Reply:
        async with self._slots:
            connection = self._take_idle() or await self._connect()
            self._busy.add(connection)
            try:
                reply = await connection.exchange(data)
            except BaseException:
                connection.close()
                raise
            finally:
                self._busy.discard(connection)
            if connection.is_open:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            return reply

    def close(self) -> None:
        for connection in [*self._idle, *self._busy]:
            connection.close()

    def _take_idle(self) -> "_Connection | None":
        fresh_from = time.monotonic() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > fresh_from:
                return connection
            connection.close()
        return None

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        context = _unverified() if self._origin.is_tls else None
        _, connection = await loop.create_connection(_Connection, self._origin.host, self._origin.port, ssl=context)
        return connection


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._reply: asyncio.Future[Reply] | None = None
        self._head: Reply | None = None
        self._body_from = 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def exchange(self, data: bytes) -> asyncio.Future[Reply]:
        if self._transport is None or self._transport.is_closing():
            raise BrokenAnswerError("closed before the request")
        self._received.clear()
        self._head = None
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._reply

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._reply is None or self._reply.done():
            return
        try:
            if self._head is None and not self._read_head():
                return
        except (ValueError, IndexError) as error:
            self._fail(BrokenAnswerError(f"no HTTP: {error}"))
            return
        self._finish_if_complete()

    def connection_lost(self, error: Exception | None) -> None:
        if self._head is not None and "content-length" not in self._head.headers:
            self._finish()
        else:
            self._fail(error or BrokenAnswerError("closed without an answer"))

    def _read_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return False
        first, *lines = self._received[:end].decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        if status < 200:
            del self._received[: end + 4]
            return self._read_head()
        pairs = (line.partition(":") for line in lines)
        self._head = Reply(status, {name.lower(): value.strip() for name, _, value in pairs})
        self._body_from = end + 4
        return True

    def _finish_if_complete(self) -> None:
        assert self._head is not None
        headers = self._head.headers
        got = len(self._received) - self._body_from
        if self._head.status in (204, 304):
            self._finish()
        elif "content-length" in headers:
            if got >= int(headers["content-length"]):
                self._finish()
        elif headers.get("transfer-encoding", "").lower() == "chunked" and self._received.endswith(b"0\r\n\r\n"):
            self._finish()

    def _finish(self) -> None:
        if self._reply is not None and not self._reply.done() and self._head is not None:
            if self._head.headers.get("connection", "").lower() == "close":
                self.close()
            self._reply.set_result(self._head)

    def _fail(self, error: Exception) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)


@lru_cache(maxsize=256)
def _parse(url: str) -> tuple[Origin, str, str]:
    """Where to connect, what to ask for, and the value of `Host`."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    origin = Origin(parts.hostname or "", parts.port or (443 if is_tls else 80), is_tls)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return origin, target, parts.netloc.rpartition("@")[2]


def _unverified() -> ssl.SSLContext:
    """WAHA verifies no certificate of a webhook."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
