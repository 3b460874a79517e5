"""Sending again what failed: only what certainly was not sent, once more and no oftener."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audience.models import Contact
from broadcasts import services
from broadcasts.models import Broadcast, Feed
from events.models import Event
from messaging import gate, lanes, recovery
from messaging.models import Message, Stream
from permissions import ids
from permissions.models import Membership, TeamMember
from tests import factories
from tests.broadcasts.conftest import Shop, url

pytestmark = pytest.mark.django_db

Error = Callable[[Any], tuple[int, str, str | None]]


def fail(shop: Shop, broadcast: Broadcast, number: int, **fields: Any) -> None:
    shop.settle(broadcast, "failed", number, **({"error_code": "not_on_whatsapp", "error_sent": "no"} | fields))


@pytest.fixture
def ended(shop: Shop) -> Broadcast:
    """Completed: two failed for certain, one whose ack said so, one in doubt, one was read."""
    shop.add_people(5)
    broadcast = shop.fed()
    fail(shop, broadcast, 2, faults=5, attempt=5, history=[{"attempt": 1}])
    fail(shop, broadcast, 1, error_code="ack_error", error_sent="maybe")
    shop.settle(broadcast, "in_doubt", 1, error_sent="maybe")
    shop.settle(broadcast, "read", 1)
    assert services.complete_finished(now=timezone.now()) == 1
    return shop.fresh(broadcast)


def retry(shop: Shop, broadcast: Broadcast, **options: Any) -> Any:
    return shop.move(broadcast, "retry-failed", **options)


def test_only_certain_failures_are_sent_again(shop: Shop, ended: Broadcast) -> None:
    before = {message.pk: message.status for message in shop.messages(ended)}

    answer = retry(shop, ended)

    body = answer.json()
    assert (answer.status_code, body["status"], body["finished_at"]) == (200, "sending", None)
    assert {word: number for word, number in body["counts"].items() if number} == {
        "queued": 2,
        "failed": 1,
        "in_doubt": 1,
        "read": 1,
    }
    again = [message for message in shop.messages(ended) if message.status == "queued"]
    assert {before[message.pk] for message in again} == {"failed"}
    for message in again:
        assert (message.error_code, message.error_sent, message.not_before, message.lease) == ("", "", None, None)
        # What was tried stays on the row, and all tries are open again.
        assert (message.attempt, message.faults, message.history) == (5, 0, [{"attempt": 1}])
    assert Stream.objects.of(shop.organization).get().state == "running"
    event = Event.objects.get(type="broadcast.retried")
    assert event.data == {"from": "completed", "to": "sending", "messages": 2}


def test_the_lane_is_awake_and_completion_comes_again(shop: Shop, ended: Broadcast) -> None:
    retry(shop, ended)

    assert services.complete_finished(now=timezone.now()) == 0
    (claim,) = lanes.claim(limit=10)
    assert claim.message_id in {message.pk for message in shop.messages(ended)}
    recovery.end_queued()
    assert shop.counts(ended)["queued"] == 2

    Message.objects.of(shop.organization).filter(status__in=["queued", "claimed"]).update(status="sent")
    assert services.complete_finished(now=timezone.now()) == 1
    assert shop.fresh(ended).status == "completed"
    assert shop.fresh(ended).finished_at is not None
    assert Event.objects.filter(type="broadcast.completed").count() == 2


def test_an_end_that_has_passed_is_a_day_from_now(shop: Shop, ended: Broadcast) -> None:
    now = timezone.now()
    for rows in (Broadcast.objects.of(shop.organization), Stream.objects.of(shop.organization)):
        rows.update(expires_at=now - timedelta(days=1))

    services.retry_failed(broadcast=ended, actor=shop.actor, now=now)

    assert shop.fresh(ended).expires_at == now + timedelta(hours=24)
    assert Stream.objects.of(shop.organization).get().expires_at == now + timedelta(hours=24)


def test_an_end_that_is_still_to_come_stays(shop: Shop, ended: Broadcast) -> None:
    retry(shop, ended)

    assert shop.fresh(ended).expires_at == ended.expires_at


def test_nothing_to_send_again_leaves_it_as_it_is(shop: Shop) -> None:
    shop.add("+5511999990001")
    broadcast = shop.fed()
    shop.settle(broadcast, "in_doubt", error_sent="maybe")
    services.complete_finished(now=timezone.now())
    before = shop.get(url(broadcast)).json()

    answer = retry(shop, broadcast)

    assert (answer.status_code, answer.json()) == (200, before)
    assert not Event.objects.filter(type="broadcast.retried").exists()


@pytest.mark.parametrize("status", ["queued", "scheduled", "pending_review", "canceled", "failed"])
def test_what_has_not_begun_or_ended_for_good_is_refused(shop: Shop, error: Error, status: str) -> None:
    shop.add("+5511999990001")
    broadcast = shop.fed()
    fail(shop, broadcast, 1)
    Broadcast.objects.of(shop.organization).update(status=status)

    assert error(retry(shop, broadcast))[:2] == (409, "invalid_transition")
    assert shop.counts(broadcast) == {"failed": 1}


def test_a_canceled_broadcast_stays_canceled(shop: Shop, error: Error) -> None:
    shop.add_people(2)
    broadcast = shop.fed()
    fail(shop, broadcast, 1)
    services.cancel(broadcast=broadcast, actor=shop.actor, now=timezone.now())

    assert error(retry(shop, broadcast))[:2] == (409, "invalid_transition")
    assert shop.counts(broadcast) == {"failed": 1, "canceled": 1}


def test_in_a_running_broadcast_they_go_behind_what_waits(shop: Shop) -> None:
    shop.add_people(3)
    broadcast = shop.fed()
    fail(shop, broadcast, 1)

    assert retry(shop, broadcast).json()["status"] == "sending"

    queue = Message.objects.of(shop.organization).filter(status="queued").order_by("priority", "turn", "position")
    assert [message.position for message in queue] == [2, 3, 1]


def test_in_a_paused_broadcast_they_wait(shop: Shop) -> None:
    shop.add_people(2)
    broadcast = shop.fed()
    fail(shop, broadcast, 1)
    services.pause(broadcast=broadcast, actor=shop.actor, now=timezone.now())

    assert retry(shop, broadcast).json()["status"] == "paused"
    assert shop.counts(broadcast) == {"queued": 2}
    assert lanes.claim(limit=10) == []
    assert shop.move(broadcast, "resume").json()["status"] == "sending"
    assert len(lanes.claim(limit=10)) == 1


def test_who_opted_out_meanwhile_is_written_to_by_nobody(shop: Shop, ended: Broadcast) -> None:
    Contact.objects.of(shop.organization).update(is_blocked=True)
    retry(shop, ended)

    (claim,) = lanes.claim(limit=10)

    assert gate.ask(claim, None).verdict == "never"
    assert Message.objects.of(shop.organization).get(pk=claim.message_id).error_code == "contact_blocked"


def test_each_number_gets_its_own_again(shop: Shop) -> None:
    shop.add_people(4)
    second = shop.number()
    broadcast = shop.fed(channels=[ids.encode(ids.CHANNEL, channel.pk) for channel in (shop.channel, second)])
    fail(shop, broadcast, 4)
    services.complete_finished(now=timezone.now())

    retry(shop, broadcast)

    assert len(lanes.claim(limit=10)) == 2
    assert not Feed.objects.of(shop.organization).filter(feed_at__isnull=False).exists()


def test_an_owner_without_the_right_sends_nothing_again(shop: Shop, ended: Broadcast, error: Error) -> None:
    TeamMember.objects.of(shop.organization).update(status="INACTIVE")

    assert error(retry(shop, ended))[:2] == (403, "group_forbidden")
    assert shop.fresh(ended).status == "completed"


def test_for_the_owner_and_admins_alone(shop: Shop, ended: Broadcast, error: Error) -> None:
    other = factories.ApiKeyFactory.create(organization=shop.organization)
    assert error(retry(shop, ended, key=other))[:2] == (403, "permission_denied")

    Membership.objects.of(shop.organization).filter(user=other.owner).update(role="admin")
    other.owner.save()
    assert retry(shop, ended, key=other).status_code == 200


def test_a_repeat_under_one_key_sends_once_again(shop: Shop, ended: Broadcast) -> None:
    first = retry(shop, ended, Idempotency_Key="de-novo")
    Message.objects.of(shop.organization).filter(status="queued").update(
        status="failed", error_code="not_on_whatsapp", error_sent="no"
    )

    second = retry(shop, ended, Idempotency_Key="de-novo")

    assert second["Idempotent-Replayed"] == "true"
    assert second.content == first.content
    assert shop.counts(ended)["failed"] == 3


def test_it_costs_the_same_for_any_number_of_messages(shop: Shop, django_assert_max_num_queries: Any) -> None:
    shop.add_people(40)
    broadcast = shop.fed()
    fail(shop, broadcast, 40)

    with django_assert_max_num_queries(20):
        services.retry_failed(broadcast=broadcast, actor=shop.actor, now=timezone.now())
