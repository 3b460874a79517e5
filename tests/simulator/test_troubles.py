"""Faults as a caller meets them, and what the book says of each."""

import socket
from typing import Any

import pytest
import requests

from tests.simulator.caller import Caller
from tests.simulator_client import SimulatorProcess


@pytest.fixture
def session(waha: Caller) -> str:
    return waha.working_session()


def raw_send(waha: Caller, session: str) -> str:
    """What a bare socket sees of one send: "reset", "closed", or the first line of the answer."""
    body = f'{{"session":"{session}","chatId":"5511988880001@c.us","text":"oi"}}'
    lines = (
        "POST /api/sendText HTTP/1.1",
        "Host: x",
        f"X-Api-Key: {waha.key}",
        f"Content-Length: {len(body)}",
    )
    port = int(waha.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join((*lines, "", body)).encode())
        try:
            received = connection.recv(65536)
        except ConnectionResetError:
            return "reset"
    return received.split(b"\r\n")[0].decode() if received else "closed"


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize(("kind", "seen"), [("reset", "reset"), ("close", "closed")])
def test_a_connection_ends_before_or_after_acting(
    waha: Caller, session: str, kind: str, seen: str, acted: bool
) -> None:
    waha.control.fault(kind, acted=acted, count=1, session=session)
    assert raw_send(waha, session) == seen
    assert [entry["answered"] for entry in waha.control.book(session=session)] == ([kind] if acted else [])
    assert raw_send(waha, session) == "HTTP/1.1 201 Created"


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("status", [401, 403, 404, 422, 429, 500, 502])
def test_a_status_comes_with_or_without_acting(waha: Caller, session: str, status: int, acted: bool) -> None:
    waha.control.fault("status", status=status, acted=acted, count=1, session=session)
    answer = waha.send(session)
    assert answer.status_code == status
    assert isinstance(answer.json(), dict)
    assert [entry["answered"] for entry in waha.control.book(session=session)] == ([str(status)] if acted else [])


def test_a_status_can_bring_its_own_body_and_retry_after(waha: Caller, session: str) -> None:
    body = {"message": "server returned error 463"}
    waha.control.fault("status", status=500, body=body, retry_after=7, session=session)
    answer = waha.send(session)
    assert answer.json() == body
    assert answer.headers["Retry-After"] == "7"


def test_a_500_echoes_the_text_that_was_to_be_sent(waha: Caller, session: str) -> None:
    waha.control.fault("status", status=500, session=session)
    answer = waha.send(session, text="segredo").json()
    assert answer["exception"]["message"] == "Connection Closed"
    assert answer["request"]["body"]["text"] == "segredo"


@pytest.mark.parametrize("acted", [False, True])
def test_a_hang_outlasts_its_caller(waha: Caller, session: str, acted: bool) -> None:
    waha.control.fault("hang", acted=acted, seconds=0.5, session=session)
    body = {"session": session, "chatId": "5511988880001@c.us", "text": "oi"}
    with pytest.raises(requests.Timeout):
        requests.post(f"{waha.url}/api/sendText", json=body, headers={"X-Api-Key": waha.key}, timeout=0.2)
    assert len(waha.control.book(session=session)) == int(acted)


@pytest.mark.parametrize(("kind", "content"), [("empty", b""), ("garbage", b'{"key":{"remoteJid":"')])
def test_a_201_may_hold_nothing_or_no_json(waha: Caller, session: str, kind: str, content: bytes) -> None:
    waha.control.fault(kind, session=session)
    answer = waha.send(session)
    assert (answer.status_code, answer.content) == (201, content)
    assert [entry["answered"] for entry in waha.control.book(session=session)] == [kind]


def test_an_answer_may_trickle(waha: Caller, session: str) -> None:
    waha.control.fault("trickle", seconds=0.4, session=session)
    answer = waha.send(session)
    assert answer.json()["status"] == "PENDING"
    assert answer.status_code == 201


@pytest.mark.parametrize(("kind", "waits_first"), [("delay_before", True), ("delay_after", False)])
def test_a_delay_stands_before_or_after_acting(waha: Caller, session: str, kind: str, waits_first: bool) -> None:
    waha.control.fault(kind, seconds=0.3, session=session)
    waha.send(session)
    (entry,) = waha.control.book(session=session)
    before, after = entry["acted_at"] - entry["requested_at"], entry["answered_at"] - entry["acted_at"]
    assert max(before, after) >= 0.299, "the loop counts in milliseconds"
    assert (before > after) is waits_first


def test_a_fault_reaches_other_calls_by_their_name(waha: Caller, session: str) -> None:
    waha.control.fault("status", op="getSession", status=502, session=session)
    assert waha.get(f"/api/sessions/{session}").status_code == 502
    assert waha.send(session).status_code == 201


def test_faults_are_listed_with_their_hits_and_lifted(waha: Caller, session: str) -> None:
    fault = waha.control.fault("status", status=500, count=2, session=session)
    waha.send(session)
    (rule,) = [rule for rule in waha.control.faults() if rule["id"] == fault]
    assert (rule["hits"], rule["left"]) == (1, 1)
    assert waha.control.clear_faults(fault) == 1
    assert waha.send(session).status_code == 201


def test_who_dies_after_asking_has_still_sent(waha: Caller, session: str) -> None:
    """The request was written; that nobody waits for the answer changes nothing."""
    waha.control.fault("delay_before", seconds=0.2, session=session)
    body: dict[str, Any] = {"session": session, "chatId": "5511988880001@c.us", "text": "oi"}
    with pytest.raises(requests.Timeout):
        requests.post(f"{waha.url}/api/sendText", json=body, headers={"X-Api-Key": waha.key}, timeout=0.1)
    assert len(waha.control.wait_for_book(1, session=session)) == 1


def test_an_idle_connection_is_closed() -> None:
    with (
        SimulatorProcess(options=("--keepalive", "0.2")) as simulator,
        socket.create_connection(("127.0.0.1", simulator.port), timeout=10) as connection,
    ):
        connection.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert connection.recv(65536) == b"", "end of file, without a request"
