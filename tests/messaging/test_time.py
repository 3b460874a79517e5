"""Whole days of an engine in virtual time: openings, closings, midnights, months' ends, changes of the clock."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from messaging import policy
from messaging.policy import Facts
from messaging.rules import DEFAULTS

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
