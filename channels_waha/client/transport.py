"""HTTP with two clocks of its own: when a request may still begin, and when all of it must be over.

urllib3's time-outs are per read: an answer that trickles in byte by byte would never end. Here each read is
given what is left until one deadline. And whether a request has begun is a fact that is noted at the first
byte, not guessed from the exception that came of it.
"""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from http import client as http_client
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import HTTPResponse

from messaging.faults import Point, reach

# Node closes a connection after 5 s of idleness: one that is about to be closed makes a false doubt.
MAX_IDLE_SECONDS = 2.0

_state = threading.local()


class TooLate(Exception):
    """The time to begin has passed; nothing was written."""


class Exchange:
    """One request and its answer. Times are monotonic."""

    def __init__(self, *, start_by: float, deadline: float) -> None:
        self.start_by = start_by
        self.deadline = deadline
        self.has_begun = False

    def begin(self) -> None:
        """Called before each write; raises TooLate before the first one."""
        if not self.has_begun and time.monotonic() > self.start_by:
            raise TooLate(TooLate.__doc__)
        self.has_begun = True

    def left(self) -> float:
        """Seconds until the deadline; raises TimeoutError past it."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline of the whole exchange has passed")
        return left


def session_of(exchange: Exchange) -> requests.Session:
    """This thread's session, its connections bound to ``exchange`` from now on."""
    _state.exchange = exchange
    # A forked child must not speak over its parent's sockets.
    if getattr(_state, "owner", None) != os.getpid():
        _state.session, _state.owner = _new_session(), os.getpid()
    session: requests.Session = _state.session
    return session


def _new_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # No compression: the cap on an answer's size is then one on what is read.
    session.headers.update({"User-Agent": "broadcast", "Accept-Encoding": "identity"})
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(max_retries=0))
    return session


def _exchange() -> Exchange:
    exchange: Exchange = _state.exchange
    return exchange


class _TimedReader(io.RawIOBase):
    """Reads of a socket, each with what is left of the exchange as its time-out."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_exchange().left())
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http_client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock))


class _Connection(HTTPConnection):
    response_class = _TimedResponse
    _used_at = 0.0

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None and time.monotonic() - self._used_at > MAX_IDLE_SECONDS:
            self.close()
        super().request(*args, **options)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        exchange = _exchange()
        exchange.begin()
        self.sock.settimeout(exchange.left())
        super().send(data)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        reach(Point.AFTER_REQUEST_WRITTEN)
        self._used_at = time.monotonic()
        return super().getresponse()


class _SecureConnection(_Connection, HTTPSConnection):
    """The same over TLS; the handshake comes before the first byte of a request."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
