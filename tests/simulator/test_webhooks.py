"""Webhooks on the wire: signature, retries, redirects, copies."""

import hashlib
import hmac
import itertools
import threading
import time
from email.utils import formatdate
from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.conftest import SCALE
from tests.simulator.receiver import Answer, Arrival, Receiver

RETRIES = {"policy": "constant", "delaySeconds": 1, "attempts": 3}
BYTES_ALIKE = ("X-Webhook-Request-Id", "X-Webhook-Timestamp", "X-Webhook-Hmac")


def always(status: int, **headers: str) -> Answer:
    return lambda _: (status, {name.replace("_", "-"): value for name, value in headers.items()})


def emit_one(waha: Caller, url: str, **more: Any) -> str:
    """Cause exactly one delivery: an inbound message, heard of as `message`."""
    name = waha.working_session(webhooks=[hook(url, "message", retries=RETRIES, **more)])
    waha.control.inbound(name, sender="5511977770001", text="oi")
    return name


def gaps(arrivals: list[Arrival]) -> list[float]:
    """Seconds between arrivals, as WAHA would count them."""
    times = [arrival.at for arrival in arrivals]
    return [(after - before) / SCALE for before, after in itertools.pairwise(times)]


def test_a_delivery_is_signed_over_its_raw_body(waha: Caller, receiver: Receiver) -> None:
    emit_one(waha, receiver.url("/h"), customHeaders=[{"name": "X-Tenant", "value": "42"}])
    (arrival,) = receiver.wait_for("/h", 1)
    expected = hmac.new(b"hook-key", arrival.body, hashlib.sha512).hexdigest()
    assert arrival.headers["X-Webhook-Hmac"] == expected
    assert arrival.headers["X-Webhook-Hmac-Algorithm"] == "sha512"
    assert arrival.headers["X-Webhook-Timestamp"] == str(arrival.event["timestamp"])
    assert arrival.headers["User-Agent"] == "WAHA/2026.7.1"
    assert arrival.headers["X-Tenant"] == "42"
    assert arrival.event["environment"]["version"] == "2026.7.1"


@pytest.mark.parametrize("status", [304, 400, 401, 404, 410, 413, 500, 503])
def test_whatever_is_no_2xx_is_asked_n_plus_1_times_byte_for_byte(
    waha: Caller, receiver: Receiver, status: int
) -> None:
    receiver.answers["/h"] = always(status)
    name = emit_one(waha, receiver.url("/h"))
    arrivals = receiver.wait_for("/h", 4)
    assert waiting.until(lambda: any(row["session"] == name for row in waha.control.state()["deliveries"]))
    assert len(receiver.arrivals("/h")) == 4
    assert len({arrival.body for arrival in arrivals}) == 1
    for header in BYTES_ALIKE:
        assert len({arrival.headers[header] for arrival in arrivals}) == 1


def test_a_retry_that_arrives_is_the_last(waha: Caller, receiver: Receiver) -> None:
    receiver.answers["/h"] = lambda number: (500 if number < 3 else 204, {})
    name = emit_one(waha, receiver.url("/h"))
    assert waiting.until(lambda: any(row["session"] == name for row in waha.control.state()["deliveries"]))
    (row,) = [row for row in waha.control.state()["deliveries"] if row["session"] == name]
    assert (row["tries"], row["outcome"]) == (3, "204")
    assert len(receiver.arrivals("/h")) == 3


@pytest.mark.parametrize(
    ("policy", "at_least"),
    [("constant", [5, 5, 5]), ("linear", [5, 10, 15]), ("exponential", [5, 10, 20])],
)
def test_retries_wait_by_their_policy(waha: Caller, receiver: Receiver, policy: str, at_least: list[float]) -> None:
    receiver.answers["/h"] = always(500)
    url = receiver.url("/h")
    name = waha.working_session(
        webhooks=[hook(url, "message", retries={"policy": policy, "delaySeconds": 5, "attempts": 3})]
    )
    waha.control.inbound(name, sender="5511977770001", text="oi")
    found = gaps(receiver.wait_for("/h", 4))
    assert all(gap >= least * 0.98 for gap, least in zip(found, at_least, strict=True)), found


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_lengthens_the_wait(waha: Caller, receiver: Receiver, as_date: bool) -> None:
    value = formatdate(time.time() + 21, usegmt=True) if as_date else "20"
    receiver.answers["/h"] = lambda number: (503, {"Retry-After": value}) if number == 1 else (200, {})
    emit_one(waha, receiver.url("/h"))
    (gap,) = gaps(receiver.wait_for("/h", 2))
    assert gap > 15, "the policy alone would have waited 1 s"


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirect_is_followed_as_a_bare_get_or_keeps_the_post(
    waha: Caller, receiver: Receiver, status: int, method: str
) -> None:
    receiver.answers["/h"] = always(status, Location="/there")
    name = emit_one(waha, receiver.url("/h"))
    (arrival,) = receiver.wait_for("/there", 1)
    assert arrival.method == method
    assert (arrival.body == b"") is (method == "GET")
    assert waiting.until(lambda: any(row["session"] == name for row in waha.control.state()["deliveries"]))
    assert len(receiver.arrivals("/h")) == 1, "the redirect counts as success: the event is lost"


def test_a_refused_connection_is_retried(waha: Caller) -> None:
    name = emit_one(waha, "http://127.0.0.1:1/h")
    assert waiting.until(lambda: any(row["session"] == name for row in waha.control.state()["deliveries"]))
    (row,) = [row for row in waha.control.state()["deliveries"] if row["session"] == name]
    assert row == {
        "event": "message",
        "session": name,
        "url": "http://127.0.0.1:1/h",
        "tries": 4,
        "outcome": "ConnectionRefusedError",
    }


def test_retries_go_on_after_the_session_is_deleted(waha: Caller, receiver: Receiver) -> None:
    receiver.answers["/h"] = lambda number: (500 if number < 3 else 200, {})
    name = waha.working_session(
        webhooks=[hook(receiver.url("/h"), "message", retries={"delaySeconds": 10, "attempts": 3})]
    )
    waha.control.inbound(name, sender="5511977770001", text="oi")
    receiver.wait_for("/h", 1)
    waha.delete(f"/api/sessions/{name}")
    assert waha.get(f"/api/sessions/{name}").status_code == 404
    assert len(receiver.wait_for("/h", 3)) == 3


def test_two_hooks_get_the_same_event_under_two_request_ids(waha: Caller, receiver: Receiver) -> None:
    hooks = [hook(receiver.url(path), "message") for path in ("/one", "/two")]
    name = waha.working_session(webhooks=hooks)
    waha.control.inbound(name, sender="5511977770001", text="oi")
    (one,), (two,) = receiver.wait_for("/one", 1), receiver.wait_for("/two", 1)
    assert one.body == two.body
    assert one.headers["X-Webhook-Request-Id"] != two.headers["X-Webhook-Request-Id"]


def test_a_star_takes_every_event(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "*")])
    waha.send(name)
    waha.control.inbound(name, sender="5511977770001", text="oi")
    wanted = {"session.status", "message", "message.any", "message.ack"}
    assert waiting.until(lambda: {item.event["event"] for item in receiver.arrivals("/h")} == wanted)


def test_without_a_key_nothing_is_signed(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(webhooks=[{"url": receiver.url("/h"), "events": ["message"]}])
    waha.control.inbound(name, sender="5511977770001", text="oi")
    (arrival,) = receiver.wait_for("/h", 1)
    assert "X-Webhook-Hmac" not in arrival.headers


def test_a_slow_receiver_delays_nobody_else(waha: Caller, receiver: Receiver) -> None:
    release = threading.Event()

    def held(_: int) -> tuple[int, dict[str, str]]:
        release.wait(20)
        return 200, {}

    receiver.answers["/slow"] = held
    name = waha.working_session(webhooks=[hook(receiver.url(path), "message") for path in ("/slow", "/h")])
    for number in range(5):
        waha.control.inbound(name, sender="5511977770001", text=f"oi {number}")
    assert len(receiver.wait_for("/h", 5)) == 5
    assert waha.control.state()["webhooks"]["pending"] >= 5
    release.set()
    assert waiting.until(lambda: len(receiver.arrivals("/slow")) == 5)


def test_an_event_is_posted_twice_or_never_when_told(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(webhooks=[hook(receiver.url("/h"), "message", "message.any")])
    waha.control.fault("webhook_duplicate", times=3, event="message", session=name)
    waha.control.fault("webhook_drop", event="message.any", session=name)
    waha.control.inbound(name, sender="5511977770001", text="oi")
    arrivals = receiver.wait_for("/h", 3, event="message")
    assert len({arrival.body for arrival in arrivals}) == 1
    assert receiver.arrivals("/h", "message.any") == []
