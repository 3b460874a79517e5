"""A place for webhooks to arrive: keeps what came, answers as told."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests import waiting

PICTURE = (Path(__file__).resolve().parents[2] / "simulator" / "samples" / "image.png").read_bytes()


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request as it came. `at` in clock seconds."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


# The number of the request (from 1) → status and headers.
Answer = Callable[[int], tuple[int, dict[str, str]]]


class Receiver:
    """Serves until closed; `answers` maps a path to how it is answered (200 otherwise)."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self._arrivals: list[Arrival] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def arrivals(self, path: str, event: str | None = None) -> list[Arrival]:
        with self._lock:
            found = [arrival for arrival in self._arrivals if arrival.path == path]
        return [item for item in found if event is None or (item.body and item.event["event"] == event)]

    def wait_for(self, path: str, count: int, *, event: str | None = None) -> list[Arrival]:
        """What arrived, once it is at least `count`."""
        assert waiting.until(lambda: len(self.arrivals(path, event)) >= count), self.arrivals(path)
        return self.arrivals(path, event)

    def _take(self, arrival: Arrival) -> tuple[int, dict[str, str]]:
        with self._lock:
            self._arrivals.append(arrival)
            number = sum(1 for item in self._arrivals if item.path == arrival.path)
        answer = self.answers.get(arrival.path)
        return answer(number) if answer else (200, {})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                arrival = Arrival(time.monotonic(), self.command, self.path, dict(self.headers), body)
                status, headers = receiver._take(arrival)
                self.send_response(status)
                for name, value in {"Content-Length": "2", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


class FileServer:
    """A picture at every path that ends in .png, 64 bytes at /file.bin, 404 at /gone."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Files(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_picture = self.path.endswith(".png")
        body = PICTURE if is_picture else bytes(range(64))
        self.send_response(404 if self.path == "/gone" else 200)
        self.send_header("Content-Type", "image/png" if is_picture else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass
