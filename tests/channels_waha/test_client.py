"""What an answer that never came proves: held against real sockets."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from django.test import override_settings

from channels_waha import client
from channels_waha.client import Answer, Server, transport
from messaging.adapters import ChannelError, Fault, Sent
from messaging.faults import Point
from tests.channels_waha.raw_server import Peer, RawServer, Script

TEXT = "segredo de Ana"
KEY = "chave-secreta"


def post(url: str, *, seconds: float = 5.0, start_by: float | None = None) -> Answer:
    return client.call(
        Server(url, KEY),
        "POST",
        "/api/sendText",
        body={"text": TEXT},
        deadline=time.monotonic() + seconds,
        start_by=start_by,
    )


def failure(url: str, *, seconds: float = 5.0, start_by: float | None = None) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        post(url, seconds=seconds, start_by=start_by)
    return caught.value


def close_at_once(peer: Peer) -> None:
    # A connection that breaks before the first byte proves that nothing was sent, which is another case.
    peer.wait_for_bytes()


def close_after_reading(peer: Peer) -> None:
    peer.read_request()


def reset_at_once(peer: Peer) -> None:
    peer.wait_for_bytes()
    peer.reset()


def reset_after_reading(peer: Peer) -> None:
    peer.read_request()
    peer.reset()


def half_a_body(peer: Peer) -> None:
    peer.read_request()
    peer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"key"')


def broken_chunks(peer: Peer) -> None:
    peer.read_request()
    peer.write(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")


def no_http(peer: Peer) -> None:
    peer.read_request()
    peer.write(b"SSH-2.0-OpenSSH\r\n\r\n")


def endless_header(peer: Peer) -> None:
    peer.read_request()
    peer.write(b"HTTP/1.1 201 Created\r\nX: " + b"a" * 100_000)


@pytest.mark.parametrize(
    "script",
    [
        close_at_once,
        close_after_reading,
        reset_at_once,
        reset_after_reading,
        half_a_body,
        broken_chunks,
        no_http,
        endless_header,
    ],
)
def test_a_connection_that_breaks_after_it_stood_is_in_doubt(script: Script) -> None:
    with RawServer(script) as server:
        error = failure(server.url)
    assert (error.sent, error.fault) == (Sent.MAYBE, Fault.GATEWAY)
    assert server.connections == 1


def hang_at_once(peer: Peer) -> None:
    peer.read_request()
    peer.hang()


def trickle_headers(peer: Peer) -> None:
    peer.read_request()
    for letter in b"HTTP/1.1 201 Created\r\nX: " + b"a" * 400:
        peer.write(bytes([letter]))
        if peer._server.over.wait(0.05):
            return


def trickle_body(peer: Peer) -> None:
    peer.read_request()
    peer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 400\r\n\r\n")
    for _ in range(400):
        peer.write(b" ")
        if peer._server.over.wait(0.05):
            return


def endless_chunks(peer: Peer) -> None:
    peer.read_request()
    peer.write(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(400):
        peer.write(b"1\r\n \r\n")
        if peer._server.over.wait(0.05):
            return


@pytest.mark.parametrize("script", [hang_at_once, trickle_headers, trickle_body, endless_chunks])
def test_the_deadline_bounds_the_whole_exchange(script: Script) -> None:
    with RawServer(script) as server:
        started = time.monotonic()
        error = failure(server.url, seconds=0.6)
        took = time.monotonic() - started
    assert (error.code, error.sent, error.fault) == ("waha_timeout", Sent.MAYBE, Fault.GATEWAY)
    assert took < 1.5


def large_answer(peer: Peer) -> None:
    peer.read_request()
    peer.answer(b"x" * 200_000)


def test_an_answer_that_is_too_large_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    with RawServer(large_answer) as server:
        error = failure(server.url)
    assert (error.code, error.sent) == ("waha_connection_lost", Sent.MAYBE)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses: bound, and not listening."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_refused_certainly_did_not_send(closed_port: int) -> None:
    error = failure(f"http://127.0.0.1:{closed_port}")
    assert (error.code, error.sent, error.fault) == ("waha_refused", Sent.NO, Fault.GATEWAY)


def test_a_name_that_does_not_resolve_certainly_did_not_send() -> None:
    error = failure("http://waha.invalid:3000")
    assert (error.code, error.sent, error.fault) == ("waha_unresolved", Sent.NO, Fault.GATEWAY)


def test_a_connection_that_is_not_taken_certainly_did_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.3)
    fillers: list[socket.socket] = []
    with socket.socket() as deaf:
        # A full backlog drops further SYNs.
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
            fillers.append(filler)
        started = time.monotonic()
        error = failure(f"http://127.0.0.1:{deaf.getsockname()[1]}")
        took = time.monotonic() - started
        for filler in fillers:
            filler.close()
    assert (error.code, error.sent, error.fault) == ("waha_connect_timeout", Sent.NO, Fault.GATEWAY)
    assert took < 2


def test_a_server_without_tls_certainly_got_nothing() -> None:
    with RawServer(no_http) as server:
        error = failure(server.url.replace("http://", "https://"))
    assert (error.sent, error.fault) == (Sent.NO, Fault.GATEWAY)


def test_past_start_by_nothing_is_written() -> None:
    with RawServer(close_after_reading) as server:
        error = failure(server.url, start_by=time.monotonic() - 0.01)
        assert server.requests == []
    assert (error.code, error.sent, error.fault) == ("too_late", Sent.NO, Fault.GATEWAY)


def test_a_connection_that_took_too_long_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = transport._Connection.connect

    def slow(connection: transport._Connection) -> None:
        connect(connection)
        threading.Event().wait(0.3)

    monkeypatch.setattr(transport._Connection, "connect", slow)
    with RawServer(close_after_reading) as server:
        error = failure(server.url, start_by=time.monotonic() + 0.15)
        assert server.requests == []
    assert (error.code, error.sent) == ("too_late", Sent.NO)


def serve(count: int) -> Script:
    def script(peer: Peer) -> None:
        for _ in range(count):
            if not peer.read_request():
                return
            peer.answer()

    return script


def test_a_connection_is_kept_between_calls() -> None:
    with RawServer(serve(3)) as server:
        assert [post(server.url).status for _ in range(3)] == [201, 201, 201]
        assert server.connections == 1


def test_a_connection_closed_by_the_server_while_idle_makes_no_doubt() -> None:
    with RawServer(serve(1)) as server:
        for _ in range(3):
            assert post(server.url).status == 201
            # Closed while idle, not while the next request is under way: that one would be a doubt.
            server.wait_until_idle()
        assert len(server.requests) == 3


def test_an_idle_connection_is_closed_before_a_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_IDLE_SECONDS", 0.05)
    with RawServer(serve(9)) as server:
        post(server.url)
        threading.Event().wait(0.1)
        post(server.url)
        assert server.connections == 2


def test_each_thread_has_its_own_connection() -> None:
    with RawServer(serve(9)) as server:
        threads = [threading.Thread(target=post, args=(server.url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.connections == 3


def test_an_answer_is_handed_on_whole_whatever_its_status() -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.answer(b'{"a": "\xc3\xa9"}', status="429 Too Many Requests", headers=["Retry-After: 7"])

    with RawServer(script) as server:
        answer = post(server.url)
    assert (answer.status, answer.object(), answer.retry_after) == (429, {"a": "é"}, 7.0)


def test_no_redirect_is_followed_and_no_cookie_kept() -> None:
    def script(peer: Peer) -> None:
        for _ in range(2):
            peer.read_request()
            peer.answer(status="302 Found", headers=["Location: /elsewhere", "Set-Cookie: a=b; Path=/"])

    with RawServer(script) as server:
        assert post(server.url).status == 302
        post(server.url)
    assert len(server.requests) == 2
    assert b"Cookie" not in server.requests[1]


def test_a_request_is_what_waha_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with RawServer(serve(1)) as server:
        post(server.url)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"POST /api/sendText HTTP/1.1"
    assert b"X-Api-Key: chave-secreta" in head
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"text": TEXT}


def test_the_process_may_die_between_writing_and_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(BaseException):
        pass

    def die(point: Point) -> None:
        raise Died(point)

    monkeypatch.setattr(transport, "reach", die)
    with RawServer(serve(1)) as server:
        with pytest.raises(Died, match="after_request_written"):
            post(server.url)
        while not server.requests:
            threading.Event().wait(0.01)


@pytest.mark.parametrize("script", [reset_after_reading, half_a_body])
def test_neither_key_nor_text_reach_the_log_or_the_error(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with RawServer(script) as server:
        error = failure(server.url)
    # Requests' own errors carry the request with them.
    assert error.__context__ is None
    assert error.__cause__ is None
    said = f"{error!r} {error.detail} {vars(error)} {caplog.text}"
    assert KEY not in said
    assert TEXT not in said
    assert KEY not in repr(Server("http://waha", KEY))
    assert TEXT not in repr(Answer(500, TEXT.encode()))


def test_without_a_server_nothing_is_sent() -> None:
    with override_settings(WAHA_BASE_URL=""), pytest.raises(ChannelError) as caught:
        client.default_server()
    assert (caught.value.sent, caught.value.fault) == (Sent.NO, Fault.GATEWAY)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("999999", 3600.0), ("", None), ("soon", None), ("-1", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)],
)
def test_retry_after_is_read_in_both_forms(value: str, seconds: float | None) -> None:
    assert client._retry_after(value) == seconds
