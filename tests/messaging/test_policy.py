"""Rules into figures: windows, days and caps by the tenant's calendar."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from messaging import policy
from messaging.policy import Facts
from messaging.rules import DEFAULTS

SAO_PAULO = "America/Sao_Paulo"
OLD = date(2020, 1, 1)


def local(zone: str, *parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo(zone)).astimezone(UTC)  # type: ignore[misc,arg-type]


def figures(facts: Facts, now: datetime, *, keep_open: float = 20, spread: float = 0.0) -> policy.Figures:
    return policy.figures(facts, now, keep_open=keep_open, spread=spread)


def facts(zone: str = SAO_PAULO, **fields: object) -> Facts:
    of_the_number = {
        name: fields.pop(name) for name in ("in_use_since", "restrictions", "failed_share") if name in fields
    }
    rules = replace(DEFAULTS, **fields)  # type: ignore[arg-type]
    return Facts(time_zone=zone, rules=rules, **{"in_use_since": OLD, **of_the_number})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "opens", "closes"),
    [
        ((2026, 12, 1, 12, 0), (2026, 12, 1, 7, 0), (2026, 12, 1, 22, 0)),
        ((2026, 12, 1, 3, 0), (2026, 12, 1, 7, 0), (2026, 12, 1, 22, 0)),
        ((2026, 12, 1, 23, 0), (2026, 12, 2, 7, 0), (2026, 12, 2, 22, 0)),
        ((2026, 12, 31, 23, 0), (2027, 1, 1, 7, 0), (2027, 1, 1, 22, 0)),
        ((2028, 2, 28, 23, 0), (2028, 2, 29, 7, 0), (2028, 2, 29, 22, 0)),
        # A Sunday is a day like others unless it is switched off.
        ((2026, 12, 6, 12, 0), (2026, 12, 6, 7, 0), (2026, 12, 6, 22, 0)),
    ],
)
def test_the_window_of_the_day_or_the_next_one(
    now: tuple[int, ...], opens: tuple[int, ...], closes: tuple[int, ...]
) -> None:
    found = figures(facts(), local(SAO_PAULO, *now))
    assert (found.open_from, found.open_until) == (local(SAO_PAULO, *opens), local(SAO_PAULO, *closes))


def test_a_window_that_closes_before_a_send_could_end_counts_as_closed() -> None:
    now = local(SAO_PAULO, 2026, 12, 1, 21, 59, 41)
    assert figures(facts(), now).open_from == local(SAO_PAULO, 2026, 12, 2, 7, 0)
    assert figures(facts(), now - timedelta(seconds=2)).open_from == local(SAO_PAULO, 2026, 12, 1, 7, 0)


@pytest.mark.parametrize(("hour", "minute", "is_open"), [(23, 30, True), (1, 30, True), (3, 0, False)])
def test_a_window_may_cross_midnight(hour: int, minute: int, is_open: bool) -> None:
    now = local(SAO_PAULO, 2026, 12, 2, hour, minute)
    found = figures(facts(opens=time(20), closes=time(2)), now)
    assert (found.open_from <= now < found.open_until) is is_open


def test_equal_times_are_open_all_day_long() -> None:
    for hour in range(24):
        now = local(SAO_PAULO, 2026, 12, 2, hour, 59)
        found = figures(facts(opens=time(0), closes=time(0)), now)
        assert found.open_from <= now
        assert found.open_until > now + timedelta(days=6)


def test_the_window_is_the_tenants() -> None:
    found = figures(facts("America/Manaus", opens=time(8), closes=time(20)), datetime(2026, 12, 1, 9, tzinfo=UTC))
    assert found.open_from == datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/Santiago", (2026, 9, 6), 23),
        ("America/New_York", (2026, 3, 8), 23),
        ("America/New_York", (2026, 11, 1), 25),
    ],
)
def test_days_of_clock_changes_are_as_long_as_they_are(zone: str, day: tuple[int, int, int], hours: int) -> None:
    found = figures(facts(zone), local(zone, *day, 12, 0))
    assert found.day_ends_at - found.day_starts_at == timedelta(hours=hours)


def test_openings_are_spread() -> None:
    now = local(SAO_PAULO, 2026, 12, 1, 3, 0)
    first, last = (figures(facts(), now, spread=spread).open_from for spread in (0.0, 0.99))
    assert timedelta(seconds=50) < last - first <= timedelta(seconds=60)
    # A number that is looked at meanwhile keeps its moment.
    late = local(SAO_PAULO, 2026, 12, 1, 7, 0) + timedelta(seconds=30)
    assert figures(facts(), late, spread=0.99).open_from == last


@pytest.mark.parametrize(
    ("age", "caps"),
    [
        (0, (50, 50)),
        (2, (50, 50)),
        (3, (100, 100)),
        (5, (100, 100)),
        (6, (200, 200)),
        (13, (200, 200)),
        (14, (300, 500)),
    ],
)
def test_caps_grow_with_age(age: int, caps: tuple[int, int]) -> None:
    now = local(SAO_PAULO, 2026, 12, 20, 12, 0)
    assert policy.caps(facts(in_use_since=date(2026, 12, 20) - timedelta(days=age)), now) == caps


def test_a_number_that_never_worked_is_new() -> None:
    now = local(SAO_PAULO, 2026, 12, 20, 12, 0)
    assert policy.caps(facts(in_use_since=None), now) == (50, 50)
    assert policy.broadcasts_from(facts(in_use_since=None), now) == date(2026, 12, 27)


def test_an_override_of_the_cap_only_tightens() -> None:
    now = local(SAO_PAULO, 2026, 12, 20, 12, 0)
    assert policy.caps(facts(daily_cap=10), now) == (10, 10)
    in_use_since = date(2026, 10, 1)
    assert policy.caps(facts(daily_cap=9000, in_use_since=in_use_since), now) == (300, 500)


def test_age_is_counted_by_the_tenants_calendar() -> None:
    late_on_the_first = datetime(2026, 12, 2, 1, 0, tzinfo=UTC)
    since = policy.first_day(SAO_PAULO, late_on_the_first, None)
    assert since == date(2026, 12, 1)
    assert policy.first_day(SAO_PAULO, late_on_the_first, OLD) == OLD
    assert policy.first_day(SAO_PAULO, None, None) is None
    week_later = local(SAO_PAULO, 2026, 12, 8, 0, 1)
    assert policy.broadcasts_from(facts(in_use_since=since), week_later) is None
    assert policy.broadcasts_from(facts(in_use_since=since), week_later - timedelta(hours=1)) == date(2026, 12, 8)
