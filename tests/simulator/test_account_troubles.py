"""Restricted accounts, outages of the whole server, its death, and webhooks that come late or anew."""

import time
from typing import Any

import pytest
import requests

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator_client import SimulatorError, SimulatorProcess

STRANGER, KNOWN = "5511988880001@c.us", "5511988880002@c.us"


def listening(waha: Caller, receiver: Receiver, *events: str) -> str:
    return waha.working_session(webhooks=[hook(receiver.url("/h"), *(events or ("message.ack",)))])


def acks_of(receiver: Receiver, chat: str) -> list[int]:
    payloads = [item.event["payload"] for item in receiver.arrivals("/h", "message.ack")]
    return sorted(payload["ack"] for payload in payloads if payload["id"].split("_")[1] == chat)


def test_a_restricted_account_fails_at_once_on_gows(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.set_engine(name, "GOWS")
    waha.control.restrict(name)
    answer = waha.send(name, STRANGER)
    assert answer.status_code == 500
    assert answer.json()["exception"]["message"] == "server returned error 463"
    assert waha.control.book(session=name) == []
    waha.control.lift_restriction(name)
    assert waha.send(name, STRANGER).status_code == 201


@pytest.mark.parametrize("engine", ["NOWEB", "WEBJS"])
def test_a_restricted_account_fails_by_an_ack_elsewhere(waha: Caller, receiver: Receiver, engine: str) -> None:
    name = listening(waha, receiver)
    waha.control.set_engine(name, engine)
    waha.control.restrict(name)
    assert waha.send(name, STRANGER).status_code == 201
    assert waiting.until(lambda: acks_of(receiver, STRANGER) == [-1])


@pytest.mark.parametrize("replies_pass", [True, False])
def test_who_wrote_first_may_be_answered(waha: Caller, receiver: Receiver, replies_pass: bool) -> None:
    name = listening(waha, receiver)
    waha.control.inbound(name, sender=KNOWN, text="oi")
    waha.control.restrict(name, replies_pass=replies_pass)
    waha.send(name, KNOWN)
    assert waiting.until(lambda: acks_of(receiver, KNOWN) == ([1, 2, 3] if replies_pass else [-1]))


def test_a_restriction_ends_by_itself(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.restrict(name, seconds=0.2, how="answer")
    assert waha.send(name, STRANGER).status_code == 500
    assert waiting.until(lambda: waha.send(name, STRANGER).status_code == 201)


@pytest.mark.parametrize(("version", "is_told"), [("2026.7.1", False), ("2026.8.1", True)])
def test_newer_servers_tell_of_restrictions(receiver: Receiver, version: str, is_told: bool) -> None:
    with SimulatorProcess(time_scale=0.02, version=version) as simulator:
        caller = Caller(simulator)
        name = listening(caller, receiver)
        simulator.control.restrict(name, seconds=3600, enforcement="WEB_COMPANION_ONLY")
        timelock = caller.get(f"/api/{name}/timelock")
        assert timelock.status_code == (200 if is_told else 404)
        if is_told:
            assert timelock.json()["isActive"] is True
            assert timelock.json()["enforcementType"] == "WEB_COMPANION_ONLY"
            assert 3500 < timelock.json()["timeEnforcementEnds"] - time.time() < 3601
        caller.send(name, STRANGER)
        (ack,) = receiver.wait_for("/h", 1, event="message.ack")
        error = ack.event["payload"].get("error")
        assert (error is not None) is is_told
        assert error is None or (error["code"], error["reason"]) == ("463", "account_restricted")
        caller.close()


def test_capping_is_told_on_gows_alone() -> None:
    with SimulatorProcess(time_scale=0.02, version="2026.8.1") as simulator:
        caller = Caller(simulator)
        name = caller.working_session()
        simulator.control.set_capping(name, cappingStatus="CAPPED", totalQuota=100, usedQuota=100)
        assert caller.get(f"/api/{name}/capping").status_code == 501
        simulator.control.set_engine(name, "GOWS")
        assert caller.get(f"/api/{name}/capping").json()["cappingStatus"] == "CAPPED"
        assert caller.get(f"/api/{name}/timelock").json()["isActive"] is False
        with pytest.raises(SimulatorError, match="unknown: quota"):
            simulator.control.set_capping(name, quota=1)
        caller.close()


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("checkExists", lambda waha, name: waha.get(f"/api/contacts/check-exists?phone=55119&session={name}")),
        ("listGroups", lambda waha, name: waha.get(f"/api/{name}/groups")),
        ("sendText", lambda waha, name: waha.send(name)),
    ],
)
def test_an_engine_fails_in_any_words(waha: Caller, op: str, call: Any) -> None:
    name = waha.working_session()
    waha.control.fault("engine_error", message="rate-overlimit", extra={"data": 429}, op=op, session=name, count=1)
    answer = call(waha, name)
    assert answer.status_code == 500
    assert (answer.json()["exception"]["message"], answer.json()["exception"]["data"]) == ("rate-overlimit", 429)
    assert call(waha, name).status_code in (200, 201)


def test_a_whole_server_is_out_for_a_while() -> None:
    with SimulatorProcess(time_scale=0.02) as simulator:
        caller = Caller(simulator)
        name = caller.working_session()
        simulator.control.fault("close", op="*", lasts=0.4)
        for path in ("/api/sessions", f"/api/{name}/lids", "/health"):
            with pytest.raises(requests.ConnectionError):
                caller.get(path)
        assert simulator.control.state()["sessions"] != [], "the control API stays"
        assert waiting.until(lambda: _answers(caller))
        caller.close()


def _answers(caller: Caller) -> bool:
    try:
        return caller.get("/api/sessions").status_code == 200
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("over_the_api", [True, False])
def test_a_restart_loses_webhooks_and_brings_sessions_back(receiver: Receiver, over_the_api: bool) -> None:
    with SimulatorProcess(time_scale=0.05) as simulator:
        caller = Caller(simulator)
        receiver.answers["/h"] = lambda _: (500, {})
        retries = {"policy": "constant", "delaySeconds": 3600, "attempts": 5}
        name = caller.working_session(webhooks=[hook(receiver.url("/h"), "message", retries=retries)])
        stopped = caller.new_session(start=False)
        simulator.control.inbound(name, sender="5511977770001", text="oi")
        receiver.wait_for("/h", 1)
        assert waiting.until(lambda: simulator.control.state()["webhooks"]["retried"] == 1)
        before = caller.get("/api/server/status").json()["startTimestamp"]
        if over_the_api:
            assert caller.post("/api/server/stop", {"force": False}).json() == {"stopping": True}
        else:
            assert simulator.control.restart() == 1
        assert waiting.until(lambda: caller.get("/api/server/status").json()["startTimestamp"] > before)
        simulator.control.wait_for_status(name, "WORKING")
        assert caller.get(f"/api/sessions/{stopped}").json()["status"] == "STOPPED"
        assert simulator.control.state()["webhooks"]["pending"] == 0
        assert caller.send(name).status_code == 201, "the account is still linked"
        caller.close()


def test_webhooks_come_late_when_told(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver, "message")
    waha.control.fault("webhook_late", seconds=0.4, count=1, session=name)
    for text in ("primeira", "segunda"):
        waha.control.inbound(name, sender="5511977770001", text=text)
    arrivals = receiver.wait_for("/h", 2)
    assert [arrival.event["payload"]["body"] for arrival in arrivals] == ["segunda", "primeira"]
    first, second = sorted(arrivals, key=lambda arrival: arrival.event["timestamp"])
    assert first.at - second.at > 0.2


def test_an_event_comes_again_under_another_id_when_told(waha: Caller, receiver: Receiver) -> None:
    name = listening(waha, receiver, "message")
    waha.control.fault("webhook_duplicate", times=2, fresh=True, session=name)
    waha.control.inbound(name, sender="5511977770001", text="oi")
    arrivals = receiver.wait_for("/h", 2)
    assert len({arrival.event["id"] for arrival in arrivals}) == 2
    assert len({arrival.event["payload"]["id"] for arrival in arrivals}) == 1
