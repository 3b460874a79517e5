"""Posts over kept-alive connections, as cheaply as Python can: what the caller uses, the server lacks."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_CONNECTIONS = 8


@dataclass(slots=True)
class Load:
    """``post(n)`` gives the n-th request as it goes over the wire. Each answer must say 200."""

    port: int
    post: Callable[[int], bytes]
    answered: int = 0
    refused: list[bytes] = field(default_factory=list)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seconds: float) -> float:
        """Post for so long; how many answers a second."""
        began = time.perf_counter()
        before = self.answered
        threads = [threading.Thread(target=self._pump, args=[began + seconds]) for _ in range(_CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (self.answered - before) / (time.perf_counter() - began)

    def _pump(self, until: float) -> None:
        done = 0
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.perf_counter() < until:
                connection.sendall(self.post(self._next()))
                head = _answer(connection)
                if not head.startswith(b"HTTP/1.1 200"):
                    self.refused.append(head[:200])
                    break
                done += 1
        with self._lock:
            self.answered += done

    def _next(self) -> int:
        with self._lock:
            self._number += 1
            return self._number


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """One POST of JSON as bytes."""
    given = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _answer(connection: socket.socket) -> bytes:
    """The head of one answer, its body read and dropped."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    missing = _length(head) - len(body)
    while missing > 0:
        missing -= len(_more(connection))
    return head


def _more(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionError("the server closed the connection")
    return received


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":", 1)[1])
    return 0
