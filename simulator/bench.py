"""`python -m simulator.bench`: how many sends a second the simulator bears on one core.

The simulator runs as a process of its own, pinned to one core; the callers and the receiver of its webhooks
run here, on the others. Two figures come out: sends a second by the clock, and sends a second of the
simulator's own processor time, which holds on a busy machine too.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvloop

KEY = "bench"
SESSION = "bench"
ACKS_SECONDS = "0.1,0.2,0.3"
EVENTS_PER_SEND = 4  # the echo and three acks
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Result:
    """`cpu_seconds` is what the simulator used; `webhooks` counts what arrived within the measured time."""

    sends: int
    webhooks: int
    seconds: float
    cpu_seconds: float
    sends_per_second: float
    sends_per_cpu_second: float


class _Sender(asyncio.Protocol):
    """One kept-alive connection that sends the next as soon as the last is answered."""

    def __init__(self, number: int, bench: "_Bench") -> None:
        self._bench = bench
        self._request = _request(f"55119{number:08}@c.us")
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < _length(head):
            return
        self._received = b""
        if not head.startswith(b"HTTP/1.1 201"):
            self._bench.fail(head.decode("latin-1"))
        elif self._bench.is_on and self._transport is not None:
            self._bench.sends += 1
            self._transport.write(self._request)


class _Receiver(asyncio.Protocol):
    """Answers each webhook as soon as it is whole."""

    def __init__(self, bench: "_Bench") -> None:
        self._bench = bench
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            whole = end + 4 + _length(bytes(self._received[:end]))
            if len(self._received) < whole:
                return
            del self._received[:whole]
            self._bench.webhooks += 1
            if self._transport is not None:
                self._transport.write(_ANSWER)


class _Bench:
    def __init__(self) -> None:
        self.is_on = True
        self.sends = 0
        self.webhooks = 0
        self.failure: str | None = None

    def fail(self, why: str) -> None:
        self.is_on = False
        self.failure = self.failure or why

    async def run(self, *, seconds: float, connections: int, with_webhooks: bool, core: int | None) -> Result:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Receiver(self), "127.0.0.1", 0)
        hook = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook" if with_webhooks else None
        senders: list[tuple[asyncio.BaseTransport, _Sender]] = []
        process, port = await asyncio.to_thread(_start, core)
        try:
            await asyncio.to_thread(_pair, port, hook)
            senders = [
                await loop.create_connection(partial(_Sender, number, self), "127.0.0.1", port)
                for number in range(connections)
            ]
            return await self._measure(process.pid, seconds)
        finally:
            self.is_on = False
            for transport, _ in senders:
                transport.close()
            process.terminate()
            await asyncio.to_thread(process.wait)
            server.close()

    async def _measure(self, pid: int, seconds: float) -> Result:
        await asyncio.sleep(1.0)  # connections are open, and the first acks have come
        began, cpu, sends, webhooks = time.monotonic(), _cpu_seconds(pid), self.sends, self.webhooks
        await asyncio.sleep(seconds)
        took, used = time.monotonic() - began, _cpu_seconds(pid) - cpu
        done = self.sends - sends
        if self.failure is not None:
            raise SystemExit(f"a send was refused: {self.failure}")
        return Result(
            sends=done,
            webhooks=self.webhooks - webhooks,
            seconds=round(took, 2),
            cpu_seconds=round(used, 2),
            sends_per_second=round(done / took),
            sends_per_cpu_second=round(done / used),
        )


def _start(core: int | None) -> tuple[subprocess.Popen[bytes], int]:
    command = [sys.executable, "-m", "simulator", "--die-with-parent", "--api-key", KEY, "--ack-delays", ACKS_SECONDS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)  # noqa: S603
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    assert process.stdout is not None
    return process, int(json.loads(process.stdout.readline())["port"])


def _pair(port: int, hook: str | None) -> None:
    """A working session, with one webhook for all that follows a send."""
    hooks = [{"url": hook, "events": ["message.any", "message.ack"], "hmac": {"key": "k"}}] if hook else []
    body = {"name": SESSION, "start": True, "config": {"webhooks": hooks}}
    _ask(port, "/api/sessions", body)
    _until(port, "SCAN_QR_CODE")
    _ask(port, f"/control/sessions/{SESSION}/scan", {"phone": "5511999990001"})
    _until(port, "WORKING")


def _until(port: int, status: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while _ask(port, f"/api/sessions/{SESSION}")["status"] != status:
        if time.monotonic() > deadline:
            raise SystemExit(f"the session did not become {status}")
        time.sleep(0.05)


def _ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"X-Api-Key": KEY, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=_WAIT_SECONDS) as answer:  # noqa: S310 - our own process
        return json.loads(answer.read())


def _request(chat_id: str) -> bytes:
    body = json.dumps({"session": SESSION, "chatId": chat_id, "text": "Olá, a promoção começa hoje às 10 h."}).encode()
    head = (
        f"POST /api/sendText HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {KEY}\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulator.bench")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--no-webhooks", action="store_true")
    parser.add_argument("--core", type=int, help="pin the simulator here; the callers to the others")
    given = parser.parse_args()
    if given.core is not None:
        others = os.sched_getaffinity(0) - {given.core}
        os.sched_setaffinity(0, others or {given.core})
    bench = _Bench()
    work = bench.run(
        seconds=given.seconds, connections=given.connections, with_webhooks=not given.no_webhooks, core=given.core
    )
    sys.stdout.write(json.dumps(asdict(uvloop.run(work))) + "\n")


if __name__ == "__main__":
    main()
