"""After a signal of restriction: nobody new is written to, then slowly; told once, nothing burnt."""

from __future__ import annotations

from datetime import timedelta

import pytest

from audience.models import Contact
from events.models import Event
from messaging import cron, db, gate, lanes, services
from messaging.gate import Verdict
from messaging.models import Message, Restriction
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

Code = Restriction.Code


def told() -> list[tuple[str, str]]:
    rows = Event.objects.filter(type="channel.status").order_by("pk")
    return [(row.data["restriction"], row.data["to"]) for row in rows]


def known(lab: Lab) -> Contact:
    """Somebody who wrote to the organization once."""
    contact = lab.person(90)
    old = lab.queue(contact_id=contact.pk)
    Message.unscoped.filter(pk=old.pk).update(status="received", direction="in")
    return contact


def test_nobody_new_is_written_to_and_the_others_are(lab: Lab) -> None:
    services.report_restriction(lab.channel.pk, Code.ERROR_463, now=db.database_now())
    new = lab.queue(contact_id=lab.person(1).pk)
    answer = gate.ask(lab.claim(), None)
    new.refresh_from_db()
    assert (answer.verdict, answer.code) == (Verdict.MESSAGE_LATER, "channel_restricted")
    assert (new.status, new.waiting_code) == ("queued", "channel_restricted")
    assert new.not_before is not None
    assert timedelta(minutes=14) < new.not_before - db.database_now() <= timedelta(minutes=15)
    # The next one goes.
    old = lab.queue(contact_id=known(lab).pk)
    claim = lab.claim()
    assert claim.message_id == old.pk
    assert gate.ask(claim, None).verdict is Verdict.GO


def test_an_end_that_is_known_is_waited_for(lab: Lab) -> None:
    ends_at = db.database_now() + timedelta(hours=2)
    services.report_restriction(lab.channel.pk, Code.TIME_LOCK, now=db.database_now(), ends_at=ends_at)
    message = lab.queue(contact_id=lab.person(1).pk)
    assert gate.ask(lab.claim(), None).until == ends_at
    message.refresh_from_db()
    assert message.not_before == ends_at


def test_it_is_told_once_and_its_end_once(lab: Lab) -> None:
    now = db.database_now()
    assert services.report_restriction(lab.channel.pk, Code.CAPPING, now=now)
    assert not services.report_restriction(lab.channel.pk, Code.CAPPING, now=now)
    assert services.end_restriction(lab.channel.pk, Code.CAPPING, now=now)
    assert not services.end_restriction(lab.channel.pk, Code.CAPPING, now=now)
    assert told() == [("capping", "restricted"), ("capping", "free")]


def test_at_its_end_who_waited_is_called_and_the_lane_goes_slowly(lab: Lab) -> None:
    services.report_restriction(lab.channel.pk, Code.ERROR_463, now=db.database_now())
    (message,) = lab.feed(lab.stream(), 1)
    gate.ask(lab.claim(), None)
    services.end_restriction(lab.channel.pk, Code.ERROR_463, now=db.database_now())
    assert lab.lane()["slowdown"] == 10
    claim = lab.claim()
    assert claim.message_id == message.pk
    assert gate.ask(claim, None).verdict is Verdict.GO
    assert 50 <= lab.lane()["broadcast_gap_now"] <= 75


def test_a_human_is_not_slowed_down(lab: Lab) -> None:
    services.report_restriction(lab.channel.pk, Code.SESSION_LOST, now=db.database_now())
    services.end_restriction(lab.channel.pk, Code.SESSION_LOST, now=db.database_now())
    lab.queue(contact_id=lab.person(1).pk, priority=Message.Priority.HUMAN)
    gate.ask(lab.claim(), None)
    assert lab.lane()["gap_now"] < 2.2


def test_one_that_ends_by_its_time_is_ended_by_the_sweep(lab: Lab) -> None:
    now = db.database_now()
    services.report_restriction(lab.channel.pk, Code.CAPPING, now=now - timedelta(hours=2), ends_at=now)
    # The policy knows before the sweep.
    assert (lab.lane()["restricted"], lab.lane()["slowdown"]) == ("", 10)
    run = cron.recover_stuck_messages()
    assert run is not None
    assert run.errors == []
    assert told() == [("capping", "restricted"), ("capping", "free")]
    # A new one is told anew.
    assert services.report_restriction(lab.channel.pk, Code.CAPPING, now=db.database_now())


def test_a_step_of_the_ramp_makes_the_figures_stale(lab: Lab) -> None:
    services.report_restriction(lab.channel.pk, Code.CAPPING, now=db.database_now())
    services.end_restriction(lab.channel.pk, Code.CAPPING, now=db.database_now() - timedelta(seconds=1799))
    lane = lab.lane()
    assert (lane["slowdown"], lane["figures_until"] - db.database_now() < timedelta(seconds=2)) == (10, True)
    Restriction.unscoped.update(ended_at=db.database_now() - timedelta(seconds=1801))
    lab.lane(figures_until="clock_timestamp()")
    lab.queue()
    assert gate.ask(lab.claim(), None).verdict is Verdict.GO
    assert lab.lane()["slowdown"] == pytest.approx(10 / 3)


def test_people_never_written_to_are_half_of_a_day_at_most(lab: Lab) -> None:
    lab.lane(cap_new="1")
    stream = lab.stream()
    first, second = lab.feed(stream, 2)
    assert gate.ask(lab.claim(), None).verdict is Verdict.GO
    assert (lab.lane()["used"], lab.lane()["used_new"]) == (1, 1)
    lab.rested()
    lab.lane(busy_message="NULL")
    answer = gate.ask(lab.claim(), None)
    second.refresh_from_db()
    assert (answer.verdict, answer.code) == (Verdict.MESSAGE_LATER, "new_people_limit")
    assert second.waiting_until == lab.lane()["day_ends_at"]
    first.refresh_from_db()
    assert first.is_new_person
    old = lab.queue(contact_id=first.contact_id)
    lab.rested()
    claim = lab.claim()
    assert claim.message_id == old.pk
    assert gate.ask(claim, None).verdict is Verdict.GO
    assert (lab.lane()["used"], lab.lane()["used_new"]) == (2, 1)


def test_a_day_that_is_over_is_kept(lab: Lab) -> None:
    lab.lane(used="7", used_new="3", day_ends_at="clock_timestamp()")
    lanes.refresh_figures(lab.channel.pk)
    lanes.refresh_figures(lab.channel.pk)
    kept = db.rows("SELECT used, used_new FROM lane_days WHERE channel_id = %s", [lab.channel.pk])
    assert kept == [(7, 3)]
    assert (lab.lane()["used"], lab.lane()["used_new"]) == (0, 0)
