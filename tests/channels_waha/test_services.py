"""Session rows: made, told a status, told the truth."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from channels_waha import services
from channels_waha.models import ChannelSession
from events.models import Event
from events.services import SYSTEM
from messaging.models import Channel
from permissions import ids
from tests.channels_waha.conftest import database_now, lane_of, state_of
from tests.factories import OrganizationFactory

MakeSession = Callable[..., ChannelSession]
ME = {"id": "5511999990001@c.us"}


@pytest.fixture
def now(db: None) -> datetime:
    found: datetime = database_now()
    return found


def tell(session: ChannelSession, status: str, at: datetime, me: dict[str, Any] | None = None) -> bool:
    applied = services.apply_status(channel_id=session.channel_id, status=status, me=me, at=at, now=at)
    session.refresh_from_db()
    return applied


def changes(session: ChannelSession) -> list[tuple[str, str]]:
    found = Event.objects.filter(type="channel_session.status_changed").order_by("created_at", "id")
    return [(event.data["from"], event.data["to"]) for event in found]


def test_a_new_session_has_a_channel_a_lane_and_an_event(session: ChannelSession) -> None:
    assert session.session_name == f"{session.organization.slug}_1"
    assert (session.status, session.is_wanted, session.phone_number) == ("STOPPED", False, "")
    assert session.channel.kind == "waha"
    assert session.channel.is_default
    assert lane_of(session)["connected"] is False
    event = Event.objects.get(type="channel_session.created")
    assert event.subject == ids.encode(ids.CHANNEL, session.channel_id)
    assert event.organization_id == session.organization_id
    assert session.webhook_secret not in str(event.data)


def test_names_are_unique_and_told_apart_by_organization(make_session: MakeSession) -> None:
    one = OrganizationFactory.create(slug="loja")
    other = OrganizationFactory.create(slug="loja-2")
    names = [make_session(organization=owner).session_name for owner in (one, one, other, one)]
    assert names == ["loja_1", "loja_2", "loja-2_1", "loja_3"]
    assert len(set(ChannelSession.unscoped.values_list("webhook_secret", flat=True))) == 4


def test_a_name_in_use_elsewhere_is_not_given(make_session: MakeSession) -> None:
    taken = make_session()
    owner = OrganizationFactory.create(slug="loja")
    ChannelSession.unscoped.filter(pk=taken.pk).update(session_name="loja_1")
    assert make_session(organization=owner).session_name == "loja_2"


def test_working_connects_the_lane_and_names_the_phone(session: ChannelSession, now: datetime) -> None:
    assert tell(session, "STARTING", now)
    assert tell(session, "SCAN_QR_CODE", now)
    assert tell(session, "SCAN_QR_CODE", now)
    assert state_of(session) == Channel.State.DISCONNECTED
    assert tell(session, "WORKING", now, ME)
    assert session.phone_number == "+5511999990001"
    assert (state_of(session), lane_of(session)["connected"]) == (Channel.State.CONNECTED, True)
    assert changes(session) == [("STOPPED", "STARTING"), ("STARTING", "SCAN_QR_CODE"), ("SCAN_QR_CODE", "WORKING")]
    assert tell(session, "FAILED", now)
    assert (state_of(session), lane_of(session)["connected"]) == (Channel.State.DISCONNECTED, False)


def test_an_account_means_nothing_before_working(session: ChannelSession, now: datetime) -> None:
    # After a pairing code was asked for, WAHA shows an account though nothing is linked.
    tell(session, "SCAN_QR_CODE", now, ME)
    assert session.phone_number == ""
    assert state_of(session) == Channel.State.DISCONNECTED


@pytest.mark.parametrize("me", [None, {}, {"id": None}, {"id": "@c.us"}, {"id": "11111@lid"}])
def test_working_without_an_account_is_working(session: ChannelSession, now: datetime, me: dict[str, Any]) -> None:
    tell(session, "WORKING", now, ME)
    tell(session, "STARTING", now)
    tell(session, "WORKING", now, me)
    assert (session.phone_number, state_of(session)) == ("+5511999990001", Channel.State.CONNECTED)


def test_words_fold_case_and_unknown_ones_are_kept(session: ChannelSession, now: datetime) -> None:
    tell(session, "working", now, ME)
    assert (session.status, state_of(session)) == ("WORKING", Channel.State.CONNECTED)
    tell(session, "Working", now, ME)
    tell(session, "Passkey_Required", now)
    tell(session, "PASSKEY_REQUIRED", now)
    assert (session.status, state_of(session)) == ("Passkey_Required", Channel.State.DISCONNECTED)
    assert len(changes(session)) == 2


def test_a_status_that_comes_late_changes_nothing(session: ChannelSession, now: datetime) -> None:
    tell(session, "WORKING", now, ME)
    assert not tell(session, "STARTING", now - timedelta(seconds=3))
    assert (session.status, len(changes(session))) == ("WORKING", 1)


def test_another_phone_holds_the_lane_until_a_person_confirms(session: ChannelSession, now: datetime) -> None:
    tell(session, "WORKING", now, ME)
    tell(session, "FAILED", now)
    tell(session, "WORKING", now, {"id": "5521988880000@c.us"})
    assert session.phone_number == "+5521988880000"
    assert lane_of(session)["holds"] == ["phone_changed"]
    tell(session, "STARTING", now)
    tell(session, "WORKING", now, {"id": "5521988880000@c.us"})
    assert lane_of(session)["holds"] == ["phone_changed"]
    services.confirm_phone(session_id=session.pk, actor=SYSTEM, now=now)
    services.confirm_phone(session_id=session.pk, actor=SYSTEM, now=now)
    assert lane_of(session)["holds"] == []
    event = Event.objects.get(type="channel_session.phone_confirmed")
    assert event.data == {"from": "+5511999990001", "to": "+5521988880000"}


def test_the_phone_of_before_needs_no_confirmation(session: ChannelSession, now: datetime) -> None:
    tell(session, "WORKING", now, ME)
    tell(session, "WORKING", now, {"id": "5521988880000@c.us"})
    # The ninth digit is a spelling of the same number.
    tell(session, "WORKING", now, {"id": "551199990001:4@s.whatsapp.net"})
    assert (session.phone_number, lane_of(session)["holds"]) == ("+5511999990001", [])


def test_the_truth_outranks_a_status_told_later_by_a_wrong_clock(session: ChannelSession, now: datetime) -> None:
    services.apply_status(
        channel_id=session.channel_id, status="WORKING", me=ME, at=now + timedelta(minutes=4), now=now
    )
    asked_at = now + timedelta(seconds=1)
    found = services.write_truth(session_id=session.pk, status="STOPPED", me=None, asked_at=asked_at, now=asked_at)
    assert (found.status, state_of(session)) == ("STOPPED", Channel.State.DISCONNECTED)
    assert found.last_health_check_at == asked_at
    # A webhook of before comes again, hours of retries later.
    assert not tell(session, "WORKING", now, ME)


def test_an_answer_older_than_a_webhook_changes_nothing(session: ChannelSession, now: datetime) -> None:
    tell(session, "WORKING", now, ME)
    before = now - timedelta(seconds=1)
    found = services.write_truth(session_id=session.pk, status="STARTING", me=None, asked_at=before, now=now)
    assert (found.status, state_of(session)) == ("WORKING", Channel.State.CONNECTED)
    assert found.last_health_check_at == now


def test_an_archived_number_stays_archived(session: ChannelSession, now: datetime) -> None:
    Channel.unscoped.filter(pk=session.channel_id).update(state=Channel.State.ARCHIVED)
    tell(session, "WORKING", now, ME)
    assert state_of(session) == Channel.State.ARCHIVED
