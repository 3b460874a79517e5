"""A server of bare sockets that does as it is told, one script per connection."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

Script = Callable[["Peer"], None]
_SECONDS = 10.0


class Peer:
    """One accepted connection. ``read_request`` keeps what came in ``server.requests``."""

    def __init__(self, server: RawServer, sock: socket.socket) -> None:
        self._server = server
        self._sock = sock

    def read_request(self) -> bytes:
        """Headers and body of the next request; empty where the caller closed."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self._sock.recv(65_536)
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
        )
        while len(body) < length:
            body += self._sock.recv(65_536)
        self._server.requests.append(head + b"\r\n\r\n" + body)
        return self._server.requests[-1]

    def wait_for_bytes(self) -> None:
        """Return when the caller has begun to write; nothing of it is read."""
        select.select([self._sock], [], [], _SECONDS)

    def write(self, data: bytes) -> None:
        self._sock.sendall(data)

    def answer(self, body: bytes = b"{}", *, status: str = "201 Created", headers: Sequence[str] = ()) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        self.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """End the connection with a RST."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def hang(self) -> None:
        """Say nothing until the test is over."""
        self._server.over.wait(_SECONDS)


class RawServer:
    """Runs ``scripts`` in turn, the last one for all further connections."""

    def __init__(self, *scripts: Script) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.over = threading.Event()
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in (self._accepting, *self._threads):
            thread.join(_SECONDS)

    def wait_until_idle(self) -> None:
        """Return when each script begun so far has ended and its connection is closed."""
        for thread in tuple(self._threads):
            thread.join(_SECONDS)

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            thread = threading.Thread(target=self._run, args=(script, sock), daemon=True)
            self._threads.append(thread)
            self._sockets.append(sock)
            thread.start()

    def _run(self, script: Script, sock: socket.socket) -> None:
        sock.settimeout(_SECONDS)
        with sock:
            try:
                script(Peer(self, sock))
            except OSError:
                # The caller is gone, as some tests want it.
                return
