"""A broadcast to many people waits for an admin: who may approve, and what that needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from broadcasts import services
from broadcasts.models import Broadcast
from channels_waha.adapter import WahaAdapter
from events.models import Event
from permissions import ids
from permissions.models import Membership, Organization, User
from tests import factories
from tests.broadcasts.conftest import Shop, url

pytestmark = pytest.mark.django_db

Error = Callable[[Any], tuple[int, str, str | None]]
PEOPLE = 4


@pytest.fixture
def large(shop: Shop) -> Shop:
    """Its audience is one person more than may pass without a review."""
    shop.add_people(PEOPLE)
    shop.add("nada")
    Organization.objects.filter(pk=shop.organization.pk).update(review_threshold=PEOPLE - 1)
    shop.organization.refresh_from_db()
    return shop


def admin_key(shop: Shop, person: User | None = None) -> Any:
    """A key of an admin; of this person, who becomes one."""
    if person is None:
        person = factories.MemberFactory.create(organization=shop.organization)
    Membership.objects.of(shop.organization).filter(user=person).update(role="admin")
    person.save()  # what is cached of him is dropped
    return factories.ApiKeyFactory.create(organization=shop.organization, owner=person)


def approve(shop: Shop, broadcast: Broadcast, key: Any, **body: Any) -> Any:
    return shop.post(body, path=f"{url(broadcast)}/approve", key=key)


def test_more_than_the_threshold_waits(large: Shop) -> None:
    broadcast = large.compose()

    assert broadcast.status == "pending_review"
    assert services.launch_due(now=timezone.now()) == 0
    assert Event.objects.get(type="broadcast.created").data == {"to": "pending_review"}
    body = large.get(url(broadcast)).json()
    assert body["status"] == "pending_review"
    assert body["waiting_for"] == {"code": "pending_review", "until": None}
    assert body["estimated_finish_at"] is None


def test_the_threshold_itself_passes(large: Shop) -> None:
    Organization.objects.filter(pk=large.organization.pk).update(review_threshold=PEOPLE)
    large.organization.refresh_from_db()

    assert large.compose().status == "queued"


def test_a_number_without_ban_risk_needs_no_review(large: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WahaAdapter, "carries_ban_risk", False)

    assert large.compose().status == "queued"


def test_500_is_the_default() -> None:
    assert factories.OrganizationFactory.create().review_threshold == 500


def test_another_admin_approves(large: Shop) -> None:
    admin_key(large, large.leader)
    other = admin_key(large)
    broadcast = large.compose()

    answer = approve(large, broadcast, other)

    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    event = Event.objects.get(type="broadcast.approved")
    assert event.data == {"from": "pending_review", "to": "queued", "recipients": PEOPLE}
    assert event.actor == ids.encode(ids.API_KEY, other.pk)
    assert services.launch_due(now=timezone.now()) == 1


def test_the_owner_does_not_approve_his_own_where_another_admin_could(large: Shop, error: Error) -> None:
    mine = admin_key(large, large.leader)
    admin_key(large)
    broadcast = large.compose()

    refused = approve(large, broadcast, mine, confirm_recipients=PEOPLE)

    assert error(refused)[:2] == (403, "another_admin_required")
    assert large.fresh(broadcast).status == "pending_review"


@pytest.mark.parametrize("given", [None, PEOPLE - 1, PEOPLE + 1, 0])
def test_a_lone_admin_types_the_count(large: Shop, error: Error, given: int | None) -> None:
    mine = admin_key(large, large.leader)
    broadcast = large.compose()
    body = {} if given is None else {"confirm_recipients": given}

    assert error(approve(large, broadcast, mine, **body)) == (422, "confirmation_required", "confirm_recipients")
    assert large.fresh(broadcast).status == "pending_review"
    assert approve(large, broadcast, mine, confirm_recipients=PEOPLE).json()["status"] == "queued"


def test_a_count_that_another_admin_gives_must_be_right_too(large: Shop, error: Error) -> None:
    admin_key(large, large.leader)
    other = admin_key(large)
    broadcast = large.compose()

    assert error(approve(large, broadcast, other, confirm_recipients=1))[:2] == (422, "confirmation_required")
    assert approve(large, broadcast, other, confirm_recipients=PEOPLE).status_code == 200


def test_an_admin_who_is_switched_off_leaves_the_other_alone(large: Shop) -> None:
    mine = admin_key(large, large.leader)
    gone = admin_key(large).owner
    gone.is_active = False
    gone.save()

    assert approve(large, large.compose(), mine, confirm_recipients=PEOPLE).status_code == 200


@pytest.mark.parametrize("role", ["attendant", "viewer"])
def test_who_is_no_admin_may_not(large: Shop, error: Error, role: str) -> None:
    admin_key(large)
    broadcast = large.compose()
    Membership.objects.of(large.organization).filter(user=large.leader).update(role=role)
    large.leader.save()

    assert error(approve(large, broadcast, large.key))[:2] == (403, "permission_denied")


def test_only_what_waits_can_be_approved(large: Shop, error: Error) -> None:
    admin_key(large, large.leader)
    other = admin_key(large)
    broadcast = large.compose()
    assert approve(large, broadcast, other).status_code == 200

    for status in ("queued", "scheduled", "sending", "paused", "completed", "canceled", "failed"):
        Broadcast.objects.of(large.organization).update(status=status)
        assert error(approve(large, broadcast, other))[:2] == (409, "invalid_transition")


def test_an_approval_takes_nothing_else(large: Shop, error: Error) -> None:
    other = admin_key(large)
    broadcast = large.compose()

    assert error(approve(large, broadcast, other, force=True)) == (400, "unknown_field", "force")
    for wrong in ("4", 4.0, True):
        assert error(approve(large, broadcast, other, confirm_recipients=wrong))[:2] == (400, "invalid")


def test_approved_before_its_time_it_is_scheduled(large: Shop) -> None:
    admin_key(large, large.leader)
    other = admin_key(large)
    later = timezone.now() + timedelta(days=1)
    broadcast = large.compose(scheduled_at=later)
    assert broadcast.status == "pending_review"

    assert approve(large, broadcast, other).json()["status"] == "scheduled"
    assert services.launch_due(now=later) == 1


def test_approved_after_its_time_it_starts_at_once(large: Shop) -> None:
    later = timezone.now() + timedelta(hours=1)
    broadcast = large.compose(scheduled_at=later)
    other = admin_key(large).owner
    admin_key(large)

    approved = services.approve(broadcast=broadcast, approver=other, actor=large.actor, now=later)

    assert approved.status == "queued"


def test_what_waits_can_be_canceled_but_not_paused(large: Shop, error: Error) -> None:
    broadcast = large.compose()

    assert error(large.move(broadcast, "pause"))[:2] == (409, "invalid_transition")
    assert large.move(broadcast, "cancel").json()["status"] == "canceled"


def test_a_repeated_approval_under_one_key_is_one(large: Shop) -> None:
    admin_key(large, large.leader)
    other = admin_key(large)
    path = f"{url(large.compose())}/approve"

    answers = [large.post({}, path=path, key=other, Idempotency_Key="sim") for _number in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert Event.objects.filter(type="broadcast.approved").count() == 1
