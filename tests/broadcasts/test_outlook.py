"""What a broadcast waits for, and when it will be done."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.utils import timezone

from broadcasts import feed, outlook, plan, selectors, services
from broadcasts.codes import WaitingCode
from broadcasts.models import Broadcast
from broadcasts.outlook import Outlook, Waiting
from broadcasts.plan import Work
from messaging import db
from messaging import services as messaging
from messaging.models import Channel, Message
from messaging.policy import Facts
from messaging.rules import DEFAULTS
from permissions import ids
from tests.broadcasts.conftest import Shop

NOON = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)  # 12:00 in São Paulo, a Tuesday
OLD = date(2020, 1, 1)


def finish(number: int, *, now: datetime = NOON, used: int = 0, **facts: Any) -> datetime | None:
    known = Facts(time_zone="America/Sao_Paulo", in_use_since=OLD, rules=replace(DEFAULTS, **facts))
    return plan.make(Work(facts=known, pace=6.25, number=number, used=used), now).finish_at


def test_inside_the_window_it_is_the_pace() -> None:
    assert finish(100) == NOON + timedelta(seconds=625)


def test_nothing_to_do_is_done_now() -> None:
    assert finish(0) == NOON


def test_before_the_window_it_begins_at_the_opening() -> None:
    night = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)

    assert finish(10, now=night) == datetime(2026, 12, 1, 10, 1, 2, 500000, tzinfo=UTC)


def test_what_the_window_does_not_hold_goes_on_at_the_next_one() -> None:
    late = datetime(2026, 12, 2, 0, 59, tzinfo=UTC)  # 21:59

    # Nine fit into the last minute; the other eleven begin at seven.
    assert finish(20, now=late) == datetime(2026, 12, 2, 10, 0, tzinfo=UTC) + timedelta(seconds=6.25 * 11)


def test_what_the_cap_does_not_hold_goes_on_the_next_day() -> None:
    assert finish(20, used=990) == datetime(2026, 12, 2, 10, 0, tzinfo=UTC) + timedelta(seconds=62.5)


def test_all_day_windows_end_their_day_at_midnight() -> None:
    all_day: dict[str, Any] = {"opens": time(0), "closes": time(0), "daily_cap": 10}

    assert finish(25, **all_day) == datetime(2026, 12, 3, 3, 0, tzinfo=UTC) + timedelta(seconds=6.25 * 5)


def test_beyond_what_anybody_can_tell_there_is_no_time() -> None:
    assert finish(100_000) is None


@pytest.fixture
def broadcast(shop: Shop) -> Broadcast:
    shop.add_people(4)
    return shop.launched()


def ahead(shop: Shop, broadcast: Broadcast, now: datetime | None = None) -> Outlook:
    fresh = shop.fresh(broadcast)
    return outlook.outlooks([fresh], {fresh.pk: selectors.tally(fresh)}, now or timezone.now())[fresh.pk]


def set_lane(shop: Shop, assignment: str) -> None:
    db.rows(f"UPDATE lanes SET {assignment} WHERE channel_id = %s", [shop.channel.pk])


@pytest.mark.django_db
def test_a_free_lane_waits_for_nothing(shop: Shop, broadcast: Broadcast) -> None:
    now = timezone.now()

    assert ahead(shop, broadcast, now) == Outlook(None, now + timedelta(seconds=25))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("assignment", "code", "has_end"),
    [
        ("connected = false", "channel_disconnected", False),
        ("holds = '{phone_changed}'", "phone_changed", False),
        ("holds = '{gateway_failing}'", "gateway_failing", False),
        # Other rooms may hold a number for causes of their own.
        ("holds = '{something_new}'", "channel_held", False),
        ("open_from = clock_timestamp() + interval '1 hour'", "outside_window", True),
        ("used = 300, cap_soft = 300", "daily_limit", True),
        ("broadcast_at = clock_timestamp() + interval '5 seconds'", "pace", True),
        ("any_at = clock_timestamp() + interval '1 second'", "pace", True),
    ],
)
def test_why_a_lane_waits(shop: Shop, broadcast: Broadcast, assignment: str, code: str, has_end: bool) -> None:
    set_lane(shop, assignment)

    waiting = ahead(shop, broadcast).waiting_for

    assert waiting is not None
    assert waiting.code == code
    assert (waiting.until is not None) is has_end


@pytest.mark.django_db
def test_a_number_with_a_message_in_flight_waits_for_nothing(shop: Shop, broadcast: Broadcast) -> None:
    set_lane(shop, "broadcast_at = clock_timestamp() + interval '5 seconds', busy_message = uuid7()")

    assert ahead(shop, broadcast).waiting_for is None


@pytest.mark.django_db
def test_figures_that_are_out_of_date_are_computed_anew(shop: Shop, broadcast: Broadcast) -> None:
    # As yesterday left them: used up, and a window that has closed.
    set_lane(
        shop,
        "used = 300, cap_soft = 300, day_starts_at = day_starts_at - interval '1 day',"
        " day_ends_at = day_ends_at - interval '1 day', open_until = clock_timestamp() - interval '1 hour'",
    )
    assert ahead(shop, broadcast).waiting_for is None

    night = datetime(2026, 12, 2, 2, 0, tzinfo=UTC)
    Channel.objects.of(shop.organization).update(window_opens=time(8), window_closes=time(20))
    waiting = ahead(shop, broadcast, night).waiting_for
    assert waiting == Waiting(WaitingCode.OUTSIDE_WINDOW, datetime(2026, 12, 2, 11, 0, tzinfo=UTC))


@pytest.mark.django_db
def test_a_number_that_was_archived(shop: Shop, broadcast: Broadcast) -> None:
    Channel.objects.of(shop.organization).update(state="archived")

    assert ahead(shop, broadcast) == Outlook(Waiting(WaitingCode.CHANNEL_ARCHIVED), None)


@pytest.mark.django_db
def test_tries_that_wait_are_waited_for(shop: Shop, broadcast: Broadcast) -> None:
    feed.run(now=timezone.now())
    later = timezone.now() + timedelta(minutes=3)
    rows = Message.objects.of(shop.organization)
    first, *others = rows.order_by("position")
    shop.settle(broadcast, "failed", 2, error_sent="no")
    rows.filter(status="queued").update(not_before=later + timedelta(minutes=1))
    rows.filter(pk=others[-1].pk).update(not_before=later)

    assert ahead(shop, broadcast).waiting_for == Waiting(WaitingCode.RETRY_WAIT, later)

    rows.filter(pk=others[-1].pk).update(not_before=None)
    assert ahead(shop, broadcast).waiting_for is None
    rows.filter(pk=others[-1].pk).update(status="sending")
    assert ahead(shop, broadcast).waiting_for is None
    assert first.status == "queued"


@pytest.mark.django_db
def test_a_schedule_and_a_review_are_waited_for(shop: Shop) -> None:
    shop.add_people(4)
    start = timezone.now() + timedelta(hours=2)
    broadcast = shop.compose(scheduled_at=start)

    assert ahead(shop, broadcast) == Outlook(Waiting(WaitingCode.SCHEDULED, start), start + timedelta(seconds=25))
    Broadcast.objects.of(shop.organization).update(status="pending_review")
    assert ahead(shop, broadcast) == Outlook(Waiting(WaitingCode.PENDING_REVIEW))


@pytest.mark.django_db
def test_broadcasts_of_one_number_take_turns(shop: Shop) -> None:
    shop.add_people(4)
    now = timezone.now()
    one = shop.launched()
    assert ahead(shop, one, now).finish_at == now + timedelta(seconds=4 * 6.25)
    shop.add_people(2)
    other = shop.launched()

    assert ahead(shop, one, now).finish_at == now + timedelta(seconds=8 * 6.25)
    services.pause(broadcast=other, actor=shop.actor, now=now)
    assert ahead(shop, one, now).finish_at == now + timedelta(seconds=4 * 6.25)


@pytest.mark.parametrize(
    ("number", "others", "seconds"),
    [(3, (), 3), (3, (1,), 4), (3, (10,), 6), (3, (10, 1), 7), (1, (10, 10, 10), 4)],
)
def test_turns(number: int, others: tuple[int, ...], seconds: int) -> None:
    facts = Facts(time_zone="America/Sao_Paulo", in_use_since=OLD)

    made = plan.make(Work(facts=facts, pace=1.0, number=number, others=others), NOON)

    assert made.finish_at == NOON + timedelta(seconds=seconds)
    assert made.days == {date(2026, 12, 1): number}


def test_a_plan_of_several_days_with_others_beside() -> None:
    facts = Facts(time_zone="America/Sao_Paulo", in_use_since=OLD, rules=replace(DEFAULTS, daily_cap=10))

    made = plan.make(Work(facts=facts, pace=1.0, number=12, others=(6,)), NOON)

    # Ten a day: five of ours beside five of theirs, then the rest beside one of theirs.
    assert made.days == {date(2026, 12, 1): 5, date(2026, 12, 2): 7}
    assert made.finish_at == datetime(2026, 12, 2, 10, 0, 8, tzinfo=UTC)


def test_what_does_not_fit_before_the_end_gets_no_turn() -> None:
    facts = Facts(time_zone="America/Sao_Paulo", in_use_since=OLD)

    made = plan.make(Work(facts=facts, pace=10.0, number=20), NOON, until=NOON + timedelta(seconds=65))

    assert (made.number, made.finish_at) == (6, None)


def test_a_number_that_may_send_nothing_has_no_plan() -> None:
    facts = Facts(time_zone="America/Sao_Paulo", in_use_since=OLD, rules=replace(DEFAULTS, daily_cap=0))

    made = plan.make(Work(facts=facts, pace=10.0, number=20), NOON, until=NOON + timedelta(days=30))

    assert (made.days, made.finish_at) == ({}, None)


@pytest.mark.django_db
def test_one_lane_that_goes_is_enough(shop: Shop) -> None:
    shop.add_people(4)
    second = shop.number()
    broadcast = shop.launched(channels=[ids.encode(ids.CHANNEL, channel.pk) for channel in (shop.channel, second)])
    messaging.set_connected(second.pk, connected=False, now=timezone.now())

    # Something leaves; but the end of what the other number has, nobody can tell.
    assert ahead(shop, broadcast) == Outlook(None, None)


@pytest.mark.django_db
def test_a_pause_names_who_paused(shop: Shop, broadcast: Broadcast) -> None:
    services.pause(broadcast=broadcast, actor=shop.actor, now=timezone.now())
    assert ahead(shop, broadcast) == Outlook(Waiting(WaitingCode.BROADCAST_PAUSED))

    Broadcast.objects.of(shop.organization).update(pause_code="owner_without_right")
    assert ahead(shop, broadcast) == Outlook(Waiting(WaitingCode.OWNER_WITHOUT_RIGHT))


@pytest.mark.django_db
def test_what_has_ended_has_no_outlook(shop: Shop, broadcast: Broadcast) -> None:
    services.cancel(broadcast=broadcast, actor=shop.actor, now=timezone.now())

    assert ahead(shop, broadcast) == Outlook()


@pytest.mark.django_db
def test_it_ends_when_its_validity_does(shop: Shop, broadcast: Broadcast) -> None:
    soon = timezone.now() + timedelta(seconds=10)
    Broadcast.objects.of(shop.organization).update(expires_at=soon)

    assert ahead(shop, broadcast).finish_at == soon
