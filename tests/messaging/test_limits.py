"""Overrides: a tenant tightens, a super-admin loosens with a reason, and the audit trail tells both."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from events.models import Event
from messaging import db, gate, lanes, limits, streams
from messaging.limits import By, InvalidLimit, LoosensALimit
from messaging.models import Channel
from permissions.models import User
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> By:
    return By(User.objects.create_user("dona"), "", db.database_now())


@pytest.fixture
def root() -> By:
    return By(User.objects.create_superuser("root"), "contrato antigo", db.database_now())


TIGHTER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"gap": 3.0}, {"gap": 3.0}),
    ({"broadcast_gap": 20.0}, {"broadcast_gap": 20.0}),
    ({"daily_cap": 40}, {"cap_soft": 40, "cap_hard": 40, "cap_new": 20}),
    ({"new_share": 10}, {"cap_new": 100}),
]
LOOSER: list[dict[str, Any]] = [
    {"gap": 0.5},
    {"broadcast_gap": 1.0},
    {"daily_cap": 5000},
    {"new_share": 90},
    {"window_opens": time(5), "window_closes": time(23)},
]


@pytest.mark.parametrize(("changes", "figures"), TIGHTER)
def test_a_tenant_tightens_for_one_number_or_all(
    lab: Lab, tenant: By, changes: dict[str, Any], figures: dict[str, Any]
) -> None:
    limits.set_for_organization(lab.organization.pk, changes, tenant)
    lane = lab.lane()
    assert {name: lane[name] for name in figures} == figures
    limits.set_for_organization(lab.organization.pk, dict.fromkeys(changes), tenant)
    limits.set_for_channel(lab.channel.pk, changes, tenant)
    lane = lab.lane()
    assert {name: lane[name] for name in figures} == figures
    assert set(Event.objects.filter(type__startswith="limit.").values_list("type", flat=True)) == {"limit.tightened"}


@pytest.mark.parametrize("changes", LOOSER)
def test_a_tenant_loosens_nothing(lab: Lab, tenant: By, changes: dict[str, Any]) -> None:
    Channel.unscoped.update(window_opens=None, window_closes=None)
    before = lab.lane()
    for change in (limits.set_for_organization, limits.set_for_channel):
        pk = lab.organization.pk if change is limits.set_for_organization else lab.channel.pk
        with pytest.raises(LoosensALimit) as error:
            change(pk, changes, tenant)
        assert error.value.fields[0] in changes
    assert lab.lane() == before
    assert not Event.objects.filter(type__startswith="limit.").exists()


def test_a_super_admin_loosens_with_a_reason(lab: Lab, root: By) -> None:
    with pytest.raises(LoosensALimit):
        limits.set_for_channel(lab.channel.pk, {"gap": 0.5}, By(root.person, " ", root.now))
    limits.set_for_channel(lab.channel.pk, {"gap": 0.5, "daily_cap": 5000}, root)
    lane = lab.lane()
    assert (lane["gap"], lane["cap_soft"], lane["cap_hard"]) == (0.5, 5000, 5000)
    told = {row.data["limit"]: row.data for row in Event.objects.filter(type="limit.loosened")}
    assert told["gap"] == {"limit": "gap", "from": "", "to": "0.5", "reason": "contrato antigo"}
    assert set(told) == {"gap", "daily_cap"}


def test_of_two_layers_the_tighter_holds(lab: Lab, tenant: By) -> None:
    limits.set_for_channel(lab.channel.pk, {"daily_cap": 100}, tenant)
    limits.set_for_organization(lab.organization.pk, {"daily_cap": 60}, tenant)
    assert lab.lane()["cap_soft"] == 60
    limits.set_for_organization(lab.organization.pk, {"daily_cap": 200}, tenant)
    assert lab.lane()["cap_soft"] == 100


def test_what_was_loosened_is_so_no_more_once_it_is_cleared(lab: Lab, root: By) -> None:
    limits.set_for_channel(lab.channel.pk, {"gap": 0.5}, root)
    limits.set_for_channel(lab.channel.pk, {"gap": None}, root)
    lab.channel.refresh_from_db()
    assert (lab.channel.loosened, lab.lane()["gap"]) == ([], 1.2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("gap", 0), ("new_share", 101), ("broadcasts_from_day", 3), ("holidays", "XX"), ("window_opens", time(8))],
)
def test_an_impossible_value_names_its_field(lab: Lab, root: By, field: str, value: Any) -> None:
    Channel.unscoped.update(window_opens=None, window_closes=None)
    with pytest.raises(InvalidLimit) as error:
        limits.set_for_channel(lab.channel.pk, {field: value}, root)
    assert error.value.field in {field, "window_closes"}


def test_a_reserve_sends_no_broadcasts_until_it_takes_over(lab: Lab, tenant: By) -> None:
    stream = lab.stream()
    (message,) = lab.feed(stream, 1)
    claim = lab.claim()
    limits.set_reserve(lab.channel.pk, is_reserve=True, by=tenant)
    answer = gate.ask(claim, None)
    message.refresh_from_db()
    assert (answer.verdict, answer.code) == (gate.Verdict.STREAM_LATER, "channel_reserved")
    assert message.waiting_code == "channel_reserved"
    # Conversations warm it.
    single = lab.queue()
    claim = lab.claim()
    assert claim.message_id == single.pk
    assert gate.ask(claim, None).verdict is gate.Verdict.GO
    lab.rested()
    lab.lane(busy_message="NULL")
    limits.set_reserve(lab.channel.pk, is_reserve=False, by=tenant)
    assert lab.claim().message_id == message.pk


def test_a_stream_has_a_pause_and_hours_of_its_own(lab: Lab) -> None:
    now = db.database_now()
    slow = streams.create(organization_id=lab.organization.pk, expires_at=None, now=now, gap=60)
    lab.feed(slow, 1)
    gate.ask(lab.claim(), None)
    assert lab.lane()["broadcast_gap_now"] >= 60
    lab.rested()
    lab.lane(busy_message="NULL")
    local = (now + timedelta(hours=3)).astimezone(ZoneInfo(lab.organization.time_zone))
    opens = local.time().replace(second=0, microsecond=0)
    closes = (local + timedelta(hours=1)).time().replace(second=0, microsecond=0)
    later = streams.create(organization_id=lab.organization.pk, expires_at=None, now=now, hours=(opens, closes))
    lab.feed(later, 1, after=5)
    assert lanes.claim(limit=10) == []
    assert lab.lane()["next_at"] == later.next_at
    assert later.next_at is not None
    assert timedelta(hours=2, minutes=58) < later.next_at - now <= timedelta(hours=3)
