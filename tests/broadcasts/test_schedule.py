"""When a broadcast starts, until when it may leave, and what becomes of one whose time passes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from audience.models import Contact
from broadcasts import feed, services
from broadcasts.models import Broadcast
from broadcasts.refusals import Refused
from events.models import Event
from messaging import db
from messaging.models import Channel, Stream
from permissions import ids
from permissions.models import TeamMember
from tests.broadcasts.conftest import Shop, url

pytestmark = pytest.mark.django_db

Error = Callable[[Any], tuple[int, str, str | None]]
NOW = timezone.now()
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def people(shop: Shop) -> Shop:
    shop.add_people(2)
    return shop


def refusal(shop: Shop, **fields: Any) -> str:
    with pytest.raises(Refused) as caught:
        shop.compose(now=NOW, **fields)
    return caught.value.code


def launch(shop: Shop, broadcast: Broadcast, now: datetime) -> str:
    services.launch_due(now=now)
    return shop.fresh(broadcast).status


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"scheduled_at": NOW}, "scheduled_in_past"),
        ({"scheduled_at": NOW - DAY}, "scheduled_in_past"),
        ({"scheduled_at": NOW + timedelta(days=365, seconds=1)}, "scheduled_too_late"),
        ({"expires_at": NOW}, "expires_in_past"),
        ({"expires_at": NOW + timedelta(days=30, seconds=1)}, "expires_too_late"),
        ({"scheduled_at": NOW + DAY, "expires_at": NOW + HOUR}, "expires_before_start"),
        ({"scheduled_at": NOW + DAY, "expires_at": NOW + DAY}, "expires_before_start"),
        ({"scheduled_at": NOW + DAY, "expires_at": NOW + timedelta(days=31, seconds=1)}, "expires_too_late"),
    ],
)
def test_times_that_cannot_be(people: Shop, fields: dict[str, Any], code: str) -> None:
    assert refusal(people, **fields) == code
    assert not Broadcast.objects.of(people.organization).exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduled_at": NOW + timedelta(days=365)},
        {"expires_at": NOW + timedelta(days=30)},
        {"scheduled_at": NOW + DAY, "expires_at": NOW + timedelta(days=31)},
    ],
)
def test_times_at_their_edge(people: Shop, fields: dict[str, Any]) -> None:
    broadcast = people.compose(now=NOW, **fields)

    assert (broadcast.scheduled_at, broadcast.expires_at) == (fields.get("scheduled_at"), fields.get("expires_at"))


def test_a_scheduled_broadcast_starts_when_its_time_has_come(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)

    assert broadcast.status == "scheduled"
    assert launch(people, broadcast, NOW + HOUR - timedelta(seconds=1)) == "scheduled"
    assert launch(people, broadcast, NOW + HOUR) == "sending"
    broadcast = people.fresh(broadcast)
    assert broadcast.started_at == NOW + HOUR
    assert broadcast.expires_at == NOW + HOUR + timedelta(days=7)
    assert feed.run(now=NOW + HOUR) == 2
    assert Event.objects.get(type="broadcast.created").data == {"to": "scheduled"}
    assert Event.objects.get(type="broadcast.started").data == {"from": "scheduled", "to": "sending"}


def test_an_end_that_was_asked_for_stays(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR, expires_at=NOW + DAY)
    launch(people, broadcast, NOW + HOUR)

    assert people.fresh(broadcast).expires_at == NOW + DAY
    assert Stream.objects.of(people.organization).get().expires_at == NOW + DAY


def test_rights_are_judged_again_at_the_start(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)
    TeamMember.objects.of(people.organization).update(status="INACTIVE")

    assert launch(people, broadcast, NOW + HOUR) == "paused"
    assert people.fresh(broadcast).pause_code == "owner_without_right"


def test_an_opt_out_before_the_start_counts(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)
    Contact.objects.of(people.organization).filter(identity="5511990000000").update(is_blocked=True)
    launch(people, broadcast, NOW + HOUR)
    feed.run(now=NOW + HOUR)

    assert people.states(broadcast) == [("skipped", "contact_blocked"), ("fed", "")]


def test_the_number_is_judged_again_at_the_start(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)
    Channel.objects.of(people.organization).update(in_use_since=NOW.date())

    assert launch(people, broadcast, NOW + HOUR) == "paused"
    assert people.fresh(broadcast).pause_code == "channel_in_warmup"


def test_a_number_may_be_new_today_if_it_is_old_enough_at_the_start(people: Shop) -> None:
    Channel.objects.of(people.organization).update(in_use_since=NOW.date() - timedelta(days=3))

    assert refusal(people) == "channel_in_warmup"
    assert people.compose(now=NOW, scheduled_at=NOW + timedelta(days=5)).status == "scheduled"


@pytest.mark.parametrize(("hours", "status"), [(6, "sending"), (6.01, "paused")])
def test_a_start_that_was_missed_by_hours_is_held_for_a_person(people: Shop, hours: float, status: str) -> None:
    """B119, B121: nothing ran meanwhile. A short delay is made up for; a long one is seen, and a person decides."""
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)
    returned = NOW + HOUR + timedelta(hours=hours)
    assert launch(people, broadcast, returned) == status
    if status == "sending":
        return
    assert people.fresh(broadcast).pause_code == "start_missed"
    assert people.get(url(broadcast)).json()["waiting_for"] == {"code": "start_missed", "until": None}
    assert launch(people, broadcast, returned + HOUR) == "paused"
    services.resume(broadcast=broadcast, actor=people.actor, now=returned + HOUR)
    assert launch(people, broadcast, returned + HOUR) == "sending"


def test_pause_and_resume_keep_the_schedule(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)

    def move(verb: Any, now: datetime) -> str:
        moved: Broadcast = verb(broadcast=broadcast, actor=people.actor, now=now)
        return moved.status

    assert move(services.pause, NOW) == "paused"
    assert launch(people, broadcast, NOW + HOUR) == "paused"
    assert move(services.resume, NOW) == "scheduled"
    assert move(services.pause, NOW) == "paused"
    assert move(services.resume, NOW + 2 * HOUR) == "queued"
    assert launch(people, broadcast, NOW + 2 * HOUR) == "sending"


@pytest.mark.parametrize("status", ["queued", "scheduled", "pending_review", "paused"])
def test_one_that_never_started_before_its_end_has_failed(people: Shop, status: str) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR, expires_at=NOW + DAY)
    Broadcast.objects.of(people.organization).update(status=status)

    assert launch(people, broadcast, NOW + DAY) == status
    assert services.complete_finished(now=NOW + DAY - timedelta(seconds=1)) == 0
    assert services.complete_finished(now=NOW + DAY) == 1

    broadcast = people.fresh(broadcast)
    assert (broadcast.status, broadcast.failure_code, broadcast.finished_at) == ("failed", "expired", NOW + DAY)
    assert people.states(broadcast) == [("expired", "expired")] * 2
    body = people.get(url(broadcast)).json()
    assert (body["status"], body["failure"]["code"], body["counts"]["expired"]) == ("failed", "expired", 2)
    assert body["failure"]["detail"]
    assert services.complete_finished(now=NOW + DAY) == 0


def test_one_that_started_and_sent_nothing_before_its_end_has_failed(people: Shop) -> None:
    broadcast = people.launched()
    later = timezone.now() + timedelta(days=8)
    services.complete_finished(now=later)

    broadcast = people.fresh(broadcast)
    assert (broadcast.status, broadcast.failure_code) == ("failed", "expired")


@pytest.mark.parametrize("status", ["sent", "in_doubt", "failed"])
def test_what_may_have_been_sent_or_can_be_sent_is_no_failure_of_the_broadcast(people: Shop, status: str) -> None:
    broadcast = people.fed()
    people.settle(broadcast, status, error_sent="no" if status == "failed" else "")
    services.complete_finished(now=timezone.now())

    assert people.fresh(broadcast).status == "completed"


def test_both_times_are_said(people: Shop) -> None:
    start, end = NOW + timedelta(days=2), NOW + timedelta(days=3)
    body = people.body(scheduled_at=start.isoformat(), expires_at=end.isoformat())

    answer = people.post(body)

    accepted, shown = answer.json(), people.get(answer["Location"]).json()
    for said in (accepted, shown):
        assert said["status"] == "scheduled"
        assert datetime.fromisoformat(said["scheduled_at"]) == start
        assert datetime.fromisoformat(said["expires_at"]) == end
    assert shown["waiting_for"] == {"code": "scheduled", "until": shown["scheduled_at"]}
    assert datetime.fromisoformat(shown["estimated_finish_at"]) >= start


def test_without_an_end_it_is_a_week_after_the_start(people: Shop) -> None:
    start = NOW + timedelta(days=2)

    said = people.post(people.body(scheduled_at=start.isoformat())).json()

    assert datetime.fromisoformat(said["expires_at"]) == start + timedelta(days=7)


def test_a_time_of_another_zone_is_the_same_moment(people: Shop) -> None:
    local = (NOW + DAY).astimezone(timezone.get_fixed_timezone(-180))

    said = people.post(people.body(scheduled_at=local.isoformat())).json()

    assert datetime.fromisoformat(said["scheduled_at"]) == local


def test_a_scheduled_broadcast_can_be_canceled(people: Shop) -> None:
    broadcast = people.compose(now=NOW, scheduled_at=NOW + HOUR)
    services.cancel(broadcast=broadcast, actor=people.actor, now=NOW)

    assert launch(people, broadcast, NOW + HOUR) == "canceled"
    assert people.counts(broadcast) == {"canceled": 2}


def test_a_number_that_may_send_nothing_is_refused(people: Shop) -> None:
    Channel.objects.of(people.organization).update(daily_cap=0)

    assert refusal(people) == "daily_limit_exceeded"

    second = people.number()
    channels = [ids.encode(ids.CHANNEL, channel.pk) for channel in (people.channel, second)]
    assert people.compose(channels=channels).status == "queued"


def test_an_end_in_a_moment_is_late_but_possible(people: Shop) -> None:
    assert people.compose(now=NOW, expires_at=NOW + timedelta(seconds=0.5)).status == "queued"


def evening() -> datetime:
    """Tomorrow at 21:00 in São Paulo."""
    return (NOW + DAY).astimezone(timezone.get_fixed_timezone(-180)).replace(hour=21, minute=0, second=0)


def test_an_end_before_the_hours_begin_is_refused(people: Shop) -> None:
    Channel.objects.of(people.organization).update(window_opens="08:00", window_closes="20:00")
    start = evening()

    assert refusal(people, scheduled_at=start, expires_at=start + 10 * HOUR) == "expires_before_window"
    assert people.compose(now=NOW, scheduled_at=start, expires_at=start + 12 * HOUR).status == "scheduled"


def test_an_end_before_the_day_whose_limit_is_used_up_is_refused(people: Shop, error: Error) -> None:
    db.rows("UPDATE lanes SET used = cap_soft WHERE channel_id = %s", [people.channel.pk])
    (midnight,) = db.row("SELECT day_ends_at FROM lanes WHERE channel_id = %s", [people.channel.pk])
    soon, later = midnight - timedelta(seconds=1), midnight + HOUR

    refused = people.post(people.body(expires_at=soon.isoformat()))

    assert error(refused) == (422, "daily_limit_exceeded", "expires_at")
    assert people.post(people.body(expires_at=later.isoformat())).status_code == 202
