"""Whole days of an engine in virtual time: openings, closings, midnights, months' ends, changes of the clock."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from messaging import lanes, policy
from messaging.models import Channel, Message
from messaging.policy import Facts
from messaging.rules import DEFAULTS
from tests import virtual_time
from tests.messaging.conftest import Lab
from tests.virtual_time import Clock, Gateway

SAO_PAULO, SANTIAGO, NEW_YORK = "America/Sao_Paulo", "America/Santiago", "America/New_York"


def local(zone: str, *parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo(zone)).astimezone(UTC)  # type: ignore[misc,arg-type]


def window(zone: str, now: datetime, *, opens: time, closes: time) -> tuple[datetime, datetime]:
    facts = Facts(time_zone=zone, in_use_since=date(2020, 1, 1), rules=replace(DEFAULTS, opens=opens, closes=closes))
    return policy.window(facts, now, keep_open=20)


def test_zones_are_those_that_are_locked() -> None:
    """B112: Paraguay keeps -03 all the year round since 2024; the machine's own zones may be older."""
    assert zoneinfo.TZPATH == ()
    assert datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("America/Asuncion")).utcoffset() == timedelta(hours=-3)


def test_an_opening_that_the_clocks_skip_is_once_and_after_it() -> None:
    """B110: 00:30 does not exist in Chile on 6 September 2026; 01:30 (-03) is that moment."""
    opens_at = datetime(2026, 9, 6, 4, 30, tzinfo=UTC)
    assert opens_at.astimezone(ZoneInfo(SANTIAGO)).isoformat() == "2026-09-06T01:30:00-03:00"
    for now in (local(SANTIAGO, 2026, 9, 5, 12, 0), opens_at, opens_at + timedelta(hours=1)):
        assert window(SANTIAGO, now, opens=time(0, 30), closes=time(5))[0] == opens_at


def test_an_hour_that_comes_twice_is_opened_once() -> None:
    """01:30 comes twice in New York on 1 November 2026: it opens at the first and stays open through the second."""
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    for now in (first, first + timedelta(hours=1)):
        found = window(NEW_YORK, now, opens=time(1, 30), closes=time(5))
        assert found == (first, datetime(2026, 11, 1, 10, tzinfo=UTC))


Day = Callable[..., tuple[Lab, Clock, Gateway]]


@pytest.fixture
def begin(db: None, request: pytest.FixtureRequest) -> Day:
    """A number of a tenant in a zone, at a local time, and its gateway; with overrides of its rules."""

    def start(zone: str, *moment: int, **overrides: object) -> tuple[Lab, Clock, Gateway]:
        clock = Clock.install(local(zone, *moment))
        lab: Lab = request.getfixturevalue("lab")
        lab.organization.time_zone = zone
        lab.organization.save()
        Channel.unscoped.filter(pk=lab.channel.pk).update(**overrides)
        lanes.refresh_figures(lab.channel.pk)
        gateway = Gateway(clock)
        lab.adapter.on_send = gateway
        return lab, clock, gateway

    return start


def days(zone: str, gateway: Gateway) -> dict[date, list[datetime]]:
    """The acts by the tenant's day, in local time."""
    found: dict[date, list[datetime]] = {}
    for at in gateway.times:
        there = at.astimezone(ZoneInfo(zone))
        found.setdefault(there.date(), []).append(there)
    return found


def go(clock: Clock, **lasting: float) -> None:
    virtual_time.run(clock, until=clock.now() + timedelta(**lasting))


def test_nothing_leaves_after_closing_however_slow_the_gateway(begin: Day) -> None:
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 1, 21, 58, window_opens=time(7), window_closes=time(22))
    gateway.before = lambda: 10.0
    lab.feed(lab.stream(), 20)
    go(clock, hours=14)
    evening, morning = days(SAO_PAULO, gateway).values()
    assert len(evening) + len(morning) == 20
    assert time(21, 59, 30) < evening[-1].time() < time(22)
    # What could not leave before closing waits for the next opening, and this number's share of its spread.
    assert time(7) <= morning[0].time() <= time(7, 1, 20)


def test_a_window_that_ends_on_saturday_goes_on_on_monday(begin: Day) -> None:
    """B116: Saturday 19:59:50, a gap of 30 s, until 20:00, and Sundays closed."""
    hours = {"window_opens": time(8), "window_closes": time(20), "sundays": False}
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 5, 19, 58, 30, **hours)
    lab.lane(broadcast_gap="30")
    lab.feed(lab.stream(), 6)
    go(clock, hours=40)
    assert [day.isoformat() for day in days(SAO_PAULO, gateway)] == ["2026-12-05", "2026-12-07"]
    saturday, monday = days(SAO_PAULO, gateway).values()
    assert (len(saturday) + len(monday), saturday[-1].time() < time(20)) == (6, True)
    assert time(8) <= monday[0].time() <= time(8, 1, 5)


def test_a_window_across_midnight(begin: Day) -> None:
    """B113: from 20:00 to 02:00. Open at 23:30 and at 01:30, closed at 03:00, over a month's end."""
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 30, 15, window_opens=time(20), window_closes=time(2))
    for hour in range(60):
        lab.queue(f"{hour}", expires_at=clock.now() + timedelta(days=9))
        go(clock, hours=1)
    acts = [at for day in days(SAO_PAULO, gateway).values() for at in day]
    # All but the last, which came at 02:00.
    assert len(acts) == 59
    assert {at.hour for at in acts} == {20, 21, 22, 23, 0, 1}


def test_equal_times_are_open_all_day_long(begin: Day) -> None:
    """B115: 08:00 to 08:00 is documented as "all day", and never a silent "never"."""
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 1, 9, window_opens=time(8), window_closes=time(8))
    for _hour in range(24):
        lab.queue()
        go(clock, hours=1)
    assert len(gateway.acts) == 24


def test_the_window_is_the_tenants(begin: Day) -> None:
    """B118: Manaus from 08:00 is 12:00 UTC, whatever the zone of the server."""
    lab, clock, gateway = begin("America/Manaus", 2026, 12, 1, 5, window_opens=time(8), window_closes=time(20))
    lab.queue()
    go(clock, hours=5)
    (at,) = gateway.times
    assert timedelta() <= at - datetime(2026, 12, 1, 12, tzinfo=UTC) <= timedelta(seconds=61)


@pytest.mark.parametrize(
    ("zone", "eve"),
    [
        (SAO_PAULO, date(2026, 12, 30)),
        (SAO_PAULO, date(2028, 2, 28)),
        (SANTIAGO, date(2026, 9, 5)),
        (SANTIAGO, date(2026, 4, 3)),
        (NEW_YORK, date(2026, 3, 7)),
        (NEW_YORK, date(2026, 10, 31)),
    ],
)
def test_a_day_is_the_tenants_from_midnight_to_midnight(begin: Day, zone: str, eve: date) -> None:
    """Year's end, leap day, a midnight that does not exist, one that comes twice, and days of 23 and 25 hours.

    Ten messages a day, half of them to people never written to before.
    """
    hours = {"window_opens": time(0), "window_closes": time(0), "daily_cap": 10}
    lab, clock, gateway = begin(zone, eve.year, eve.month, eve.day, 22, **hours)
    lab.feed(lab.stream(), 18)
    go(clock, hours=80)
    found = days(zone, gateway)
    assert [len(each) for each in found.values()] == [5, 5, 5, 3]
    assert list(found) == [eve + timedelta(days=number) for number in range(4)]
    for each in list(found.values())[1:]:
        midnight = datetime.combine(each[0].date(), time(0), tzinfo=ZoneInfo(zone)).astimezone(UTC)
        assert timedelta() <= each[0] - midnight <= timedelta(seconds=10)


def test_what_comes_at_night_leaves_at_the_next_opening_and_humans_at_once(begin: Day) -> None:
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 31, 23, window_opens=time(7), window_closes=time(22))
    lab.queue("automático")
    lab.queue("humano", priority=Message.Priority.HUMAN)
    go(clock, hours=10)
    (human, automatic) = gateway.times
    assert [outgoing.text for _at, outgoing in gateway.acts] == ["humano", "automático"]
    assert human - local(SAO_PAULO, 2026, 12, 31, 23) < timedelta(seconds=3)
    assert timedelta() <= automatic - local(SAO_PAULO, 2027, 1, 1, 7) <= timedelta(seconds=61)


def test_a_holiday_a_saturday_and_a_sunday(begin: Day) -> None:
    """Christmas 2026 is a Friday: what comes on its eve after closing leaves on Saturday, what is left on Monday."""
    hours = {"window_opens": time(7), "window_closes": time(22), "sundays": False, "holidays": "BR", "daily_cap": 10}
    lab, clock, gateway = begin(SAO_PAULO, 2026, 12, 24, 22, 30, **hours)
    lab.feed(lab.stream(), 8)
    go(clock, days=5)
    found = {day.isoformat(): len(each) for day, each in days(SAO_PAULO, gateway).items()}
    assert found == {"2026-12-26": 5, "2026-12-28": 3}
