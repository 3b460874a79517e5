"""messaging's port as WAHA fills it, against the simulator."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from channels_waha import presence, services
from channels_waha.adapter import WahaAdapter
from channels_waha.client import Server, call
from channels_waha.models import ChannelSession
from messaging import adapters, ranks
from messaging.adapters import ChannelAdapter, ChannelError, Fault, Outgoing, Sent
from permissions.ids import new_id
from tests.channels_waha.conftest import envelope
from tests.simulator_client import SimulatorControl, SimulatorProcess

PHONE = "5511988880001"


@pytest.fixture
def adapter() -> WahaAdapter:
    return WahaAdapter()


@pytest.fixture
def waha(simulator: SimulatorProcess, settings: Settings) -> SimulatorControl:
    """The simulator as our WAHA; nothing listens for its webhooks here."""
    settings.WAHA_BASE_URL = simulator.url
    settings.WAHA_API_KEY = simulator.api_key
    return simulator.control


@pytest.fixture
def working(session: ChannelSession, waha: SimulatorControl, simulator: SimulatorProcess) -> ChannelSession:
    """A session that works at the simulator, with NOWEB's store on."""
    name = f"t{new_id().hex[-16:]}"
    ChannelSession.unscoped.filter(pk=session.pk).update(session_name=name)
    services.set_server(session, version="2026.7.1", engine="NOWEB")
    session.refresh_from_db()
    config = {"noweb": {"store": {"enabled": True}}}
    body = {"name": name, "start": True, "config": config}
    server = Server(simulator.url, simulator.api_key)
    call(server, "POST", "/api/sessions", body=body, deadline=time.monotonic() + 10)
    waha.pair(name, phone="5511977770001")
    return session


def outgoing(session: ChannelSession, *, provider_id: str | None = None, **fields: Any) -> Outgoing:
    values: dict[str, Any] = {"type": "text", "address": PHONE, "text": "olá 👋", "attempt": 1} | fields
    return Outgoing(message_id=new_id(), channel_id=session.channel_id, provider_id=provider_id, **values)


def send(adapter: ChannelAdapter, message: Outgoing, *, seconds: float = 10.0) -> str | None:
    now = time.monotonic()
    return adapter.send(message, start_by=now + 2, deadline=now + seconds)


def failure(adapter: ChannelAdapter, message: Outgoing, *, seconds: float = 10.0) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        send(adapter, message, seconds=seconds)
    return caught.value


def test_the_settings_name_this_adapter(db: None) -> None:
    assert isinstance(adapters.for_kind("waha"), WahaAdapter)


@pytest.mark.parametrize(
    ("version", "engine", "takes"),
    [
        ("2026.4.3", "NOWEB", True),
        ("2026.7.1", "GOWS", True),
        ("2026.10.1", "NOWEB", True),
        ("2027.1", "NOWEB", True),
        ("2026.4.2", "NOWEB", False),
        ("2026.7.1", "WEBJS", False),
        ("", "NOWEB", False),
        ("latest", "NOWEB", False),
    ],
)
def test_an_id_of_ours_is_made_where_waha_takes_one(
    adapter: WahaAdapter, session: ChannelSession, version: str, engine: str, takes: bool
) -> None:
    services.set_server(session, version=version, engine=engine)
    made = {adapter.new_provider_id(session.channel_id) for _ in range(50)}
    if not takes:
        assert made == {None}
        return
    assert len(made) == 50
    assert all(re.fullmatch(r"3EB0[0-9A-F]{18}", identifier or "") for identifier in made)


def test_a_text_leaves_once_under_our_id(adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl) -> None:
    ours = adapter.new_provider_id(working.channel_id)
    assert send(adapter, outgoing(working, provider_id=ours)) == ours
    (entry,) = waha.book(session=working.session_name)
    assert (entry["chat_id"], entry["text"], entry["id"]) == (f"{PHONE}@c.us", "olá 👋", ours)
    assert entry["id_given"]


def test_without_an_id_of_ours_waha_gives_one(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl
) -> None:
    given = send(adapter, outgoing(working))
    (entry,) = waha.book(session=working.session_name)
    assert given == entry["id"]


@pytest.mark.parametrize("engine", ["NOWEB", "GOWS", "WEBJS"])
def test_each_engines_answer_is_read(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl, engine: str
) -> None:
    waha.set_engine(working.session_name, engine)
    given = send(adapter, outgoing(working, address="111111111111111@lid"))
    (entry,) = waha.book(session=working.session_name)
    assert (given, entry["chat_id"]) == (entry["id"], "111111111111111@lid")


@pytest.mark.parametrize(
    ("fault", "code", "sent", "left"),
    [
        ({"kind": "status", "status": 500, "acted": True}, "waha_error", Sent.MAYBE, 1),
        ({"kind": "status", "status": 502}, "waha_error", Sent.MAYBE, 0),
        ({"kind": "status", "status": 401}, "waha_unauthorized", Sent.NO, 0),
        ({"kind": "status", "status": 429, "retry_after": 9}, "waha_rate_limited", Sent.NO, 0),
        ({"kind": "reset"}, "waha_connection_lost", Sent.MAYBE, 0),
        ({"kind": "close", "acted": True}, "waha_connection_lost", Sent.MAYBE, 1),
        ({"kind": "hang", "acted": True}, "waha_timeout", Sent.MAYBE, 1),
        ({"kind": "empty"}, "waha_broken_answer", Sent.MAYBE, 1),
        ({"kind": "garbage"}, "waha_broken_answer", Sent.MAYBE, 1),
        ({"kind": "trickle", "seconds": 30}, "waha_timeout", Sent.MAYBE, 1),
    ],
)
def test_what_is_said_agrees_with_what_left(
    adapter: WahaAdapter,
    working: ChannelSession,
    waha: SimulatorControl,
    fault: dict[str, Any],
    code: str,
    sent: Sent,
    left: int,
) -> None:
    waha.fault(**fault, session=working.session_name, count=1)
    error = failure(adapter, outgoing(working), seconds=1.0)
    assert (error.code, error.sent) == (code, sent)
    assert error.retry_after == fault.get("retry_after")
    assert len(waha.book(session=working.session_name)) == left


def test_a_session_that_is_not_ready_is_the_lanes_fault(
    adapter: WahaAdapter, session: ChannelSession, working: ChannelSession, waha: SimulatorControl
) -> None:
    waha.unlink(working.session_name)
    error = failure(adapter, outgoing(working))
    assert (error.code, error.sent, error.fault) == ("session_not_working", Sent.NO, Fault.LANE)
    assert error.detail == "the session is FAILED"


def test_a_session_that_waha_does_not_know_is_the_lanes_fault(
    adapter: WahaAdapter, session: ChannelSession, waha: SimulatorControl
) -> None:
    error = failure(adapter, outgoing(session))
    assert (error.code, error.sent, error.fault) == ("session_unknown", Sent.NO, Fault.LANE)


def test_a_type_that_is_not_built_is_refused_before_the_network(adapter: WahaAdapter, session: ChannelSession) -> None:
    error = failure(adapter, outgoing(session, type="image"))
    assert (error.code, error.sent, error.permanent) == ("type_not_supported", Sent.NO, True)


@pytest.mark.parametrize("address", ["", "garbage", "+55 11 99999", "0@c.us", "@c.us", "x@nowhere"])
def test_an_address_that_is_none_is_refused_before_the_network(
    adapter: WahaAdapter, session: ChannelSession, address: str
) -> None:
    error = failure(adapter, outgoing(session, address=address))
    assert (error.code, error.sent, error.fault) == ("invalid_chat_id", Sent.NO, Fault.RECIPIENT)


def test_past_its_time_nothing_leaves(adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl) -> None:
    with pytest.raises(ChannelError, match="too_late"):
        adapter.send(outgoing(working), start_by=time.monotonic() - 1, deadline=time.monotonic() + 5)
    assert waha.book(session=working.session_name) == []


def test_a_message_is_found_once_it_was_acked(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl
) -> None:
    ours = adapter.new_provider_id(working.channel_id)
    message = outgoing(working, provider_id=ours)
    assert adapter.find(message) is None
    send(adapter, message)
    deadline = time.monotonic() + 10
    while (found := adapter.find(message)) is None:
        assert time.monotonic() < deadline
    assert found.provider_id == ours
    assert found.rank >= ranks.SENT


def test_a_message_without_an_id_is_not_looked_for(adapter: WahaAdapter, session: ChannelSession) -> None:
    assert adapter.find(outgoing(session)) is None


@pytest.mark.parametrize(
    ("chat", "spellings"),
    [
        ("5511999990001@c.us", {"5511999990001", "5511999990001@c.us", "551199990001", "551199990001@c.us"}),
        ("551199990001@c.us", {"5511999990001", "5511999990001@c.us", "551199990001", "551199990001@c.us"}),
        ("551133334444@c.us", {"551133334444", "551133334444@c.us"}),
        ("111111111111111@lid", {"111111111111111@lid"}),
        ("120363000000000001@g.us", {"120363000000000001@g.us"}),
    ],
)
def test_every_spelling_of_a_chat(adapter: WahaAdapter, chat: str, spellings: set[str]) -> None:
    assert set(adapter.addresses_of(chat)) == spellings


def test_a_status_reaches_the_row(adapter: WahaAdapter, session: ChannelSession) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    body = envelope(session, "session.status", {"status": "WORKING"}, me={"id": "5511999990001:2@s.whatsapp.net"})
    found = adapter.parse_webhook(json.dumps(body).encode(), channel_id=session.channel_id, received_at=now)
    for change in found.updates:
        assert isinstance(change, adapters.AccountChange)
        adapter.apply_account_change(session.channel_id, change, now=now)
    session.refresh_from_db()
    assert (session.status, session.phone_number) == ("WORKING", "+5511999990001")


def prepare(adapter: ChannelAdapter, message: Outgoing, *, seconds: float = 10.0) -> float:
    """How long it took."""
    began = time.monotonic()
    adapter.prepare(message, deadline=began + seconds)
    return time.monotonic() - began


def test_typing_is_off_unless_it_is_wanted(adapter: WahaAdapter, session: ChannelSession, settings: Settings) -> None:
    assert not adapter.is_slow_to_prepare(outgoing(session))
    settings.WAHA_TYPING_SECONDS = 3
    assert adapter.is_slow_to_prepare(outgoing(session))
    assert not adapter.is_slow_to_prepare(outgoing(session, type="image"))


def test_a_text_is_typed_before_it_leaves(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl, settings: Settings
) -> None:
    settings.WAHA_TYPING_SECONDS = 1
    took = prepare(adapter, outgoing(working, text="palavra " * 500))
    assert 1 <= took < 3
    send(adapter, outgoing(working))
    book = waha.book(session=working.session_name, source="all")
    assert [entry["kind"] for entry in book] == ["startTyping", "stopTyping", "text"]
    assert {entry["chat_id"] for entry in book} == {f"{PHONE}@c.us"}
    assert book[1]["acted_at"] - book[0]["acted_at"] >= 1


@pytest.mark.parametrize("fault", [{"kind": "status", "status": 500}, {"kind": "reset"}, {"kind": "hang"}])
def test_a_text_that_cannot_be_typed_leaves_all_the_same(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl, settings: Settings, fault: dict[str, Any]
) -> None:
    settings.WAHA_TYPING_SECONDS = 1
    waha.fault(**fault, op="startTyping", session=working.session_name, count=1)
    assert prepare(adapter, outgoing(working), seconds=4) < 4
    send(adapter, outgoing(working))
    assert [entry["kind"] for entry in waha.book(session=working.session_name, source="all")] == ["text"]


def test_typing_ends_by_its_deadline(
    adapter: WahaAdapter, working: ChannelSession, waha: SimulatorControl, settings: Settings
) -> None:
    settings.WAHA_TYPING_SECONDS = 60
    waha.fault("hang", op="stopTyping", session=working.session_name, count=1)
    assert prepare(adapter, outgoing(working, text="x" * 4000), seconds=3) < 3.5


@pytest.mark.parametrize(("text", "least", "most"), [("oi", 0.6, 1.2), ("x" * 100, 5, 6), ("x" * 4000, 6, 6)])
def test_it_takes_as_long_as_the_text_and_no_longer_than_it_may(text: str, least: float, most: float) -> None:
    drawn = [presence.typing_seconds(text, most=6, spread=spread / 10) for spread in range(10)]
    assert least <= min(drawn) <= max(drawn) <= most
