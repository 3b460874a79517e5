"""Groups: found, asked for, changed; and what is written in them."""

from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller, hook
from tests.simulator.receiver import Receiver
from tests.simulator.recorded import deliveries, shape

ANA, BRUNO, CARLA = "5511977770001", "5511977770002", "5511977770003"
OWN = "5511999990001"
GROUP = "120363000000000001@g.us"


@pytest.fixture
def session(waha: Caller, receiver: Receiver) -> str:
    return waha.working_session(phone=OWN, webhooks=[hook(receiver.url("/h"), "*")], webjs={"tagsEventsOn": True})


def find_itself_in(waha: Caller, session: str, **more: Any) -> None:
    waha.control.group(session, GROUP, subject="Clientes", members=[ANA, {"phone": BRUNO, "lid": True}], **more)


def roles(waha: Caller, session: str) -> dict[str, str]:
    rows = waha.get(f"/api/{session}/groups/{GROUP}/participants/v2").json()
    return {row["pn"].partition("@")[0]: row["role"] for row in rows}


def test_a_session_finds_itself_in_a_group(waha: Caller, receiver: Receiver, session: str) -> None:
    find_itself_in(waha, session)
    (joined,) = receiver.wait_for("/h", 1, event="group.v2.join")
    payload = joined.event["payload"]
    assert payload["group"]["subject"] == "Clientes"
    assert {row["pn"] for row in payload["group"]["participants"]} == {f"{phone}@c.us" for phone in (OWN, ANA, BRUNO)}
    assert payload["timestamp"] > 10**12, "in milliseconds, as recorded"
    (old_style,) = receiver.wait_for("/h", 1, event="group.join")
    recorded = next(row["body"]["payload"] for row in deliveries() if row["event"] == "group.join")
    assert set(recorded) <= set(old_style.event["payload"])
    assert set(recorded["participants"][0]) == set(old_style.event["payload"]["participants"][0])


@pytest.mark.parametrize(
    ("engine", "first"),
    [
        ("NOWEB", lambda body: body[GROUP]["subject"]),
        ("GOWS", lambda body: body[0]["Name"]),
        ("WEBJS", lambda body: body[0]["groupMetadata"]["subject"]),
    ],
)
def test_each_engine_lists_groups_in_its_shape(waha: Caller, session: str, engine: str, first: Any) -> None:
    waha.control.set_engine(session, engine)
    find_itself_in(waha, session)
    assert first(waha.get(f"/api/{session}/groups").json()) == "Clientes"
    assert BRUNO in waha.get(f"/api/{session}/groups").text
    assert BRUNO not in waha.get(f"/api/{session}/groups?exclude=participants").text
    assert len(waha.get(f"/api/{session}/groups/{GROUP}/participants").json()) == 3
    assert waha.get(f"/api/{session}/groups/count").json() == {"count": 1}


def test_members_come_and_go_and_rise(waha: Caller, receiver: Receiver, session: str) -> None:
    find_itself_in(waha, session, admin=True)
    path = f"/api/{session}/groups/{GROUP}"
    waha.post(f"{path}/participants/add", {"participants": [{"id": f"{CARLA}@c.us"}]})
    waha.post(f"{path}/admin/promote", {"participants": [{"id": f"{CARLA}@c.us"}]})
    waha.post(f"{path}/participants/remove", {"participants": [{"id": f"{ANA}@c.us"}]})
    assert roles(waha, session) == {OWN: "superadmin", BRUNO: "participant", CARLA: "admin"}
    waha.post(f"{path}/admin/demote", {"participants": [{"id": f"{CARLA}@c.us"}]})
    assert roles(waha, session)[CARLA] == "participant"
    told = [item.event["payload"] for item in receiver.wait_for("/h", 4, event="group.v2.participants")]
    assert sorted((payload["type"], payload["participants"][0]["role"]) for payload in told) == [
        ("demote", "participant"),
        ("join", "participant"),
        ("leave", "left"),
        ("promote", "admin"),
    ]
    recorded = next(row["body"]["payload"] for row in deliveries() if row["event"] == "group.v2.participants")
    assert set(recorded) == set(told[0])


def test_who_is_no_admin_changes_nothing(waha: Caller, session: str) -> None:
    find_itself_in(waha, session)
    path = f"/api/{session}/groups/{GROUP}"
    answer = waha.post(f"{path}/participants/add", {"participants": [{"id": f"{CARLA}@c.us"}]})
    assert (answer.status_code, answer.json()["exception"]["message"]) == (500, "forbidden")
    assert CARLA not in roles(waha, session)
    missing = waha.get(f"/api/{session}/groups/120363999999999999@g.us")
    assert (missing.status_code, missing.json()["exception"]["message"]) == (500, "item-not-found")


def test_a_group_is_founded_renamed_and_left(waha: Caller, receiver: Receiver, session: str) -> None:
    body = {"name": "Novos", "participants": [{"id": f"{ANA}@c.us"}]}
    group_id = waha.post(f"/api/{session}/groups", body).json()["id"]
    path = f"/api/{session}/groups/{group_id}"
    assert waha.put(f"{path}/subject", {"subject": "Antigos"}).json() == {"success": True}
    assert waha.get(path).json()["subject"] == "Antigos"
    (updated,) = receiver.wait_for("/h", 1, event="group.v2.update")
    assert updated.event["payload"]["group"] == {"id": group_id, "subject": "Antigos"}
    assert waha.post(f"{path}/leave").status_code == 201
    receiver.wait_for("/h", 1, event="group.v2.leave")
    assert waha.get(f"/api/{session}/groups").json() == {}


def test_another_session_joins_by_the_link(waha: Caller, session: str) -> None:
    find_itself_in(waha, session, admin=True)
    code = waha.get(f"/api/{session}/groups/{GROUP}/invite-code").json()
    other = waha.working_session(phone="5511999990002")
    info = waha.get(f"/api/{other}/groups/join-info?code={code}").json()
    assert info["subject"] == "Clientes"
    joined = waha.post(f"/api/{other}/groups/join", {"code": f"https://chat.whatsapp.com/{code}"})
    assert joined.json() == {"id": GROUP}
    assert "5511999990002" in roles(waha, session)
    assert waha.post(f"/api/{session}/groups/{GROUP}/invite-code/revoke").json() != code
    assert waha.post(f"/api/{other}/groups/join", {"code": code}).status_code == 500


def test_each_member_acknowledges_for_itself(waha: Caller, receiver: Receiver, session: str) -> None:
    find_itself_in(waha, session, admin=True)
    waha.send(session, GROUP, "bom dia")
    told = [item.event["payload"] for item in receiver.wait_for("/h", 4, event="message.ack.group")]
    recorded = next(row["body"]["payload"] for row in deliveries() if row["event"] == "message.ack.group")
    read = [payload for payload in told if payload["ack"] == 3]
    assert all(shape(payload) == shape(recorded) for payload in read)
    assert sorted(payload["ack"] for payload in told) == [1, 1, 3, 3], "a member's delivery shows as SERVER"
    assert {payload["participant"].partition("@")[2] for payload in told} == {"c.us", "lid"}
    (own,) = receiver.wait_for("/h", 1, event="message.ack")
    assert (own.event["payload"]["ack"], own.event["payload"]["from"]) == (1, GROUP)


@pytest.mark.parametrize("is_admin", [True, False])
def test_where_admins_alone_write_others_are_refused(
    waha: Caller, receiver: Receiver, session: str, is_admin: bool
) -> None:
    find_itself_in(waha, session, admin=is_admin, announce=True)
    assert waha.send(session, GROUP, "bom dia").status_code == 201
    (ack,) = receiver.wait_for("/h", 1, event="message.ack")
    assert ack.event["payload"]["ack"] == (1 if is_admin else -1)


def test_a_refresh_learns_whose_hidden_ids_are_in_groups(waha: Caller, session: str) -> None:
    find_itself_in(waha, session)
    rows = waha.get(f"/api/{session}/groups/{GROUP}/participants/v2").json()
    lid = next(row["id"] for row in rows if row["pn"] == f"{BRUNO}@c.us")
    assert waha.get(f"/api/{session}/lids/{lid}").json() == {"lid": lid, "pn": None}
    waha.post(f"/api/{session}/groups/refresh")
    assert waha.get(f"/api/{session}/lids/{lid}").json() == {"lid": lid, "pn": f"{BRUNO}@c.us"}


def test_a_group_that_hides_nobody_hides_oneself_neither(waha: Caller, session: str) -> None:
    waha.control.group(session, GROUP, subject="Clientes", members=[ANA])
    rows = waha.get(f"/api/{session}/groups/{GROUP}/participants/v2").json()
    assert {row["id"] for row in rows} == {f"{OWN}@c.us", f"{ANA}@c.us"}


def test_the_control_api_adds_removes_and_throws_out(waha: Caller, receiver: Receiver, session: str) -> None:
    find_itself_in(waha, session)
    waha.control.group_members(session, GROUP, add=[CARLA], remove=[ANA], promote=[BRUNO])
    assert roles(waha, session) == {OWN: "participant", BRUNO: "admin", CARLA: "participant"}
    waha.control.leave_group(session, GROUP)
    receiver.wait_for("/h", 1, event="group.v2.leave")
    assert waiting.until(lambda: waha.get(f"/api/{session}/groups/count").json() == {"count": 0})
