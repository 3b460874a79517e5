"""Sessions: pairing, losing and getting back the connection, calls that exclude each other."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator_client import SimulatorError


def statuses(receiver: Receiver, path: str) -> list[str]:
    """In the order of their events."""
    found = [arrival.event for arrival in receiver.arrivals(path, "session.status")]
    return [event["payload"]["status"] for event in sorted(found, key=lambda event: event["timestamp"])]


def test_a_session_is_paired_by_its_qr(waha: Caller, receiver: Receiver) -> None:
    name = waha.new_session(webhooks=[hook(receiver.url("/h"), "session.status")], metadata={"tenant": "42"})
    waha.control.wait_for_status(name, "SCAN_QR_CODE")
    value = waha.get(f"/api/{name}/auth/qr?format=raw").json()["value"]
    waha.control.scan(name, phone="5511999990001", push_name="Acme", qr=value)
    waha.control.wait_for_status(name, "WORKING")
    assert waiting.until(lambda: "WORKING" in statuses(receiver, "/h"))
    assert statuses(receiver, "/h") == ["STARTING", "SCAN_QR_CODE", "STARTING", "WORKING"]
    last = receiver.arrivals("/h")[-1].event
    assert last["metadata"] == {"tenant": "42"}
    assert last["me"]["id"] == "5511999990001@c.us"
    assert last["me"]["pushName"] == "Acme"
    assert last["me"]["lid"].endswith("@lid")
    assert waha.get(f"/api/sessions/{name}/me").json() == last["me"]


def test_a_wrong_qr_is_not_scanned(waha: Caller) -> None:
    name = waha.new_session()
    with pytest.raises(SimulatorError, match="409"):
        waha.control.scan(name, phone="5511999990001", qr="2@old")
    assert waha.control.session(name)["status"] == "SCAN_QR_CODE"


def test_a_qr_nobody_scans_is_shown_six_times_and_then_the_session_fails(waha: Caller, receiver: Receiver) -> None:
    name = waha.new_session(webhooks=[hook(receiver.url("/h"), "session.status")])
    first = waha.get(f"/api/{name}/auth/qr?format=raw").json()["value"]
    waha.control.wait_for_status(name, "FAILED")
    assert waiting.until(lambda: "FAILED" in statuses(receiver, "/h"))
    assert statuses(receiver, "/h") == ["STARTING", *["SCAN_QR_CODE"] * 6, "FAILED"]
    assert waha.post(f"/api/sessions/{name}/restart").status_code == 201
    second = waha.get(f"/api/{name}/auth/qr?format=raw").json()["value"]
    assert first != second


def test_start_is_false_unless_told(waha: Caller) -> None:
    created = waha.post("/api/sessions", {"config": {}}).json()
    assert created["status"] == "STOPPED"
    assert created["name"].startswith("session_")


def test_a_stopped_session_is_hidden_from_the_plain_list(waha: Caller) -> None:
    name = waha.new_session(start=False)
    assert name not in {session["name"] for session in waha.get("/api/sessions").json()}
    assert name in {session["name"] for session in waha.get("/api/sessions?all=true").json()}


def test_unknown_fields_of_a_configuration_are_dropped(waha: Caller) -> None:
    name = waha.new_session(start=False, webhook=[], metadata={"a": "1"}, noweb={"store": {"enabled": True}})
    config = waha.get(f"/api/sessions/{name}").json()["config"]
    assert config == {"metadata": {"a": "1"}, "noweb": {"markOnline": True, "store": {"enabled": True}}}


@pytest.mark.parametrize(
    "body",
    [
        {"name": 5},
        {"name": "x" * 55},
        {"name": "ok", "config": []},
        {"name": "ok", "config": {"webhooks": {}}},
        {"name": "ok", "config": {"webhooks": ["x"]}},
        {"name": "ok", "config": {"webhooks": [{"url": "http://x", "events": "message"}]}},
        {"name": "ok", "config": {"webhooks": [{"events": ["message"]}]}},
        {"name": "ok", "config": {"webhooks": [hook("http://x", "message", retries={"attempts": "3"})]}},
    ],
)
def test_bad_values_are_refused_with_400(waha: Caller, body: dict[str, Any]) -> None:
    answer = waha.post("/api/sessions", body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "Bad Request"


def test_a_body_that_is_no_json_is_refused_with_400(waha: Caller) -> None:
    headers = {"X-Api-Key": waha.key, "Content-Type": "application/json"}
    for body in ("{", "[]", "[" * 100_000):
        assert waha.ask("POST", "/api/sessions", body, headers).status_code == 400


def test_a_new_server_takes_the_key_in_the_query_too(waha: Caller) -> None:
    assert waha.ask("GET", f"/api/sessions?x-api-key={waha.key}", None, {}).status_code == 200
    assert waha.ask("GET", "/api/sessions?x-api-key=wrong", None, {}).status_code == 401
    assert waha.ask("GET", "/ping", None, {}).json() == {"message": "pong"}
    assert waha.get("/health").json()["status"] == "ok"


def test_a_lost_socket_comes_back_by_itself(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.drop(name)
    assert waha.control.session(name)["status"] == "STARTING"
    waha.control.wait_for_status(name, "WORKING")


def test_a_lost_network_comes_back_on_command(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.drop(name, stay=True)
    assert waha.send(name).status_code == 422
    assert waha.control.session(name)["status"] == "STARTING"
    waha.control.restore(name)
    waha.control.wait_for_status(name, "WORKING")
    assert waha.send(name).status_code == 201


def test_a_session_without_network_fails_in_the_end(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.drop(name, stay=True)
    waha.control.wait_for_status(name, "FAILED")


def test_a_call_waits_for_a_session_that_is_about_to_work(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.drop(name)
    assert waha.send(name).status_code == 201


def test_an_unlinked_session_needs_a_logout_and_a_new_qr(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.unlink(name)
    assert waha.post(f"/api/sessions/{name}/start").status_code == 422
    assert waha.post(f"/api/sessions/{name}/restart").status_code == 201
    waha.control.wait_for_status(name, "FAILED")
    assert waha.post(f"/api/sessions/{name}/logout").status_code == 201
    waha.control.pair(name, phone="5511999990002")


def test_a_session_keeps_its_account_over_a_stop(waha: Caller) -> None:
    name = waha.working_session(phone="5511999990003")
    assert waha.post(f"/api/sessions/{name}/stop").json()["me"] is None
    assert waha.post(f"/api/sessions/{name}/stop").status_code == 201
    waha.post(f"/api/sessions/{name}/start")
    assert waha.control.wait_for_status(name, "WORKING")["me"]["id"] == "5511999990003@c.us"


def test_a_new_configuration_restarts_what_runs_and_replaces_the_old(waha: Caller, receiver: Receiver) -> None:
    name = waha.working_session(metadata={"old": "1"})
    body = {"config": {"webhooks": [hook(receiver.url("/new"), "session.status")]}}
    answer = waha.put(f"/api/sessions/{name}", body).json()
    assert (answer["status"], answer["config"]) == ("STARTING", body["config"])
    waha.control.wait_for_status(name, "WORKING")
    arrival = receiver.wait_for("/new", 1)[0]
    assert "metadata" not in arrival.event


def test_lifecycle_calls_exclude_each_other_and_who_waits_too_long_gets_a_500(slow: Caller) -> None:
    """Each takes 3 s, and nobody waits longer than 5."""
    name = slow.new_session()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: slow.post(f"/api/sessions/{name}/restart"), range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 500, 500]
    late = next(answer.json() for answer in answers if answer.status_code == 500)
    assert late["exception"]["message"] == f"async-lock timed out in queue {name}"


def test_a_restricted_core_has_one_session(core: Caller) -> None:
    answer = core.post("/api/sessions", {"name": "other", "config": {}})
    assert answer.status_code == 422
    assert "WAHA PLUS" in answer.json()["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("POST", "faults", {"kind": "nonsense"}, 400, "kind"),
        ("POST", "faults", {"kind": "status", "status": "bad"}, 400, "status must be"),
        ("POST", "faults", {"kind": "status", "status": 42}, 400, "status must be"),
        ("POST", "faults", {"kind": "delay_after", "seconds": "1"}, 400, "seconds must be"),
        ("POST", "faults", {"kind": "drop_acks", "acks": "all"}, 400, "acks must be"),
        ("POST", "faults", {"kind": "reset", "session": 5}, 400, "session must be"),
        ("POST", "inbound", {}, 400, "missing 'session'"),
        ("POST", "inbound", {"session": "{name}"}, 400, "missing 'from'"),
        ("POST", "inbound", {"session": "{name}", "from": "Ana", "text": "x"}, 400, "from must be a phone"),
        ("POST", "inbound", {"session": "{name}", "from": "55119", "text": "x", "twice": 1}, 400, "twice must be"),
        ("POST", "calls", {"session": "{name}", "from": "55119", "event": {}}, 400, "event must be one of"),
        ("POST", "presence", {"session": "{name}", "chat_id": "1", "presence": "x"}, 400, "presence must be one of"),
        ("POST", "events", {"session": "{name}", "event": "message", "raw": "%"}, 400, "raw must be base64"),
        ("POST", "acks", {"session": "{name}", "id": "x", "ack": "3"}, 400, "ack must be a number"),
        ("POST", "phone-sends", {"session": "{name}", "to": "55119", "text": "x"}, 422, "Session status"),
        ("POST", "sessions/nobody/drop", None, 404, ""),
        ("POST", "sessions/{name}/drop", None, 409, "STOPPED cannot become STARTING"),
        ("POST", "sessions/{name}/scan", {"phone": "x"}, 400, "phone must be a phone"),
        ("POST", "sessions/{name}/engine", {"engine": "WPP"}, 400, "engine must be one of"),
        ("POST", "sessions/{name}/restrict", {"how": "no"}, 400, "how must be one of"),
        ("PUT", "sessions/{name}/contacts/55119", {"lid": [1]}, 400, "lid must be a text"),
        ("PUT", "sessions/{name}/groups/1@g.us", {"subject": "x", "members": [5]}, 400, "a member must be"),
        ("POST", "sessions/{name}/groups/1@g.us/members", {}, 400, "no group 1@g.us"),
        ("PUT", "numbers/55119", {"exists": "no"}, 400, "exists must be true or false"),
        ("GET", "book?since=now", None, 400, "since must be a number"),
        ("GET", "chats", None, 400, "missing 'session'"),
    ],
)
def test_the_control_api_names_what_is_wrong(
    waha: Caller, method: str, path: str, body: Any, status: int, error: str
) -> None:
    name = waha.new_session(start=False)
    sent = None if body is None else json.dumps(body).replace("{name}", name)
    answer = waha.ask(method, f"/control/{path.replace('{name}', name)}", sent, {"Content-Type": "application/json"})
    assert answer.status_code == status
    assert error in answer.json().get("error", "")
