"""The client that posts webhooks, against servers that answer in every way HTTP allows."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from simulator.wire import BrokenAnswerError, HttpClient, Reply

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")), 0)
    return head + await reader.readexactly(length)


def exchange(talk: Talk, *, times: int = 1, pause: float = 0.0) -> tuple[list[Reply], int]:
    """Post so many times, one after the other; the replies, and how many connections it took."""

    async def run() -> tuple[list[Reply], int]:
        connections = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            try:
                await talk(reader, writer)
            except asyncio.IncompleteReadError:
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/h?x=1"
        client = HttpClient()
        replies = []
        try:
            for _ in range(times):
                replies.append(await client.request("POST", url, {"X-A": "1"}, b"body"))
                await asyncio.sleep(pause)
        finally:
            client.close()
            server.close()
            await server.wait_closed()
        return replies, connections

    return asyncio.run(asyncio.wait_for(run(), 20))


def answering(*parts: bytes, then_close: bool = False) -> Talk:
    """Answers every request with these bytes, each part in a packet of its own."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)
            if then_close:
                return

    return talk


def test_a_request_is_written_whole() -> None:
    seen = b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen = await read_request(reader)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()

    exchange(talk)
    first, *lines = seen.decode().split("\r\n")
    assert first == "POST /h?x=1 HTTP/1.1"
    assert lines[0].startswith("Host: 127.0.0.1:")
    assert "X-A: 1" in lines
    assert "Content-Length: 4" in lines
    assert lines[-1] == "body"


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",), 200),
        ((b"HTTP/1.1 200 OK\r\ncontent-le", b"ngth: 2\r\n", b"\r\no", b"k"), 200),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), 204),
        ((b"HTTP/1.1 304 Not Modified\r\n\r\n",), 304),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"), 500),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", b"0\r\n\r\n"), 200),
    ],
    ids=["plain", "in pieces", "no content", "not modified", "interim", "chunked"],
)
def test_answers_are_read_and_the_connection_kept(parts: tuple[bytes, ...], status: int) -> None:
    replies, connections = exchange(answering(*parts), times=3)
    assert [reply.status for reply in replies] == [status] * 3
    assert connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    ],
)
def test_a_connection_that_ends_is_replaced(answer: bytes) -> None:
    replies, connections = exchange(answering(answer, then_close=True), times=2, pause=0.05)
    assert [reply.status for reply in replies] == [200, 200]
    assert connections == 2


def test_headers_are_found_under_lower_case_names() -> None:
    (reply,), _ = exchange(answering(b"HTTP/1.1 503 X\r\nRETRY-After:  7 \r\nContent-Length: 0\r\n\r\n"))
    assert reply.headers["retry-after"] == "7"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"hello\r\n\r\n"])
def test_no_answer_and_a_broken_one_are_errors(answer: bytes) -> None:
    with pytest.raises(BrokenAnswerError):
        exchange(answering(answer, then_close=True))


def test_requests_at_once_use_connections_of_their_own() -> None:
    """Nobody is answered before all have asked."""

    async def run() -> list[int]:
        asked = 0
        all_asked = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            await read_request(reader)
            asked += 1
            if asked == 20:
                all_asked.set()
            await all_asked.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/h"
        client = HttpClient()
        try:
            replies = await asyncio.gather(*(client.request("POST", url, {}, b"x") for _ in range(20)))
        finally:
            client.close()
            server.close()
            await server.wait_closed()
        return [reply.status for reply in replies]

    assert asyncio.run(asyncio.wait_for(run(), 20)) == [200] * 20
