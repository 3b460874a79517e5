"""What an owner's loss of right stops, and what the end of a key does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from broadcasts import feed, services
from broadcasts.models import Broadcast
from events.models import Event
from messaging.models import Stream
from permissions import ids
from permissions import services as permissions
from permissions.models import ApiKey, Membership, TeamMember
from tests.broadcasts.conftest import Shop

pytestmark = pytest.mark.django_db


def disable(shop: Shop) -> None:
    shop.leader.is_active = False
    shop.leader.save()


TAKE_AWAY: dict[str, Callable[[Shop], object]] = {
    "he is switched off": disable,
    "he left": lambda shop: Membership.objects.of(shop.organization).update(is_active=False),
    "his membership is gone": lambda shop: Membership.objects.of(shop.organization).delete(),
    "he leads no more": lambda shop: TeamMember.objects.of(shop.organization).update(role="MEMBER"),
    "he is inactive in the team": lambda shop: TeamMember.objects.of(shop.organization).update(status="INACTIVE"),
    "he left the team": lambda shop: TeamMember.objects.of(shop.organization).delete(),
}


def trail(broadcast: Broadcast) -> list[tuple[str, dict[str, str]]]:
    subject = ids.encode(ids.BROADCAST, broadcast.pk)
    return list(Event.objects.filter(subject=subject).order_by("id").values_list("type", "data"))


@pytest.mark.parametrize("change", TAKE_AWAY)
def test_an_owner_who_lost_the_right_pauses_his_run(shop: Shop, change: str) -> None:
    shop.add_people(2)
    broadcast = shop.fed()
    assert not broadcast.feeds.exclude(feed_at=None).exists()
    assert services.pause_unentitled(now=timezone.now()) == 0
    TAKE_AWAY[change](shop)

    assert services.pause_unentitled(now=timezone.now()) == 1

    assert shop.fresh(broadcast).pause_code == "owner_without_right"
    assert Stream.objects.of(shop.organization).get().state == "paused"
    assert trail(broadcast)[-1] == (
        "broadcast.paused",
        {"from": "sending", "to": "paused", "code": "owner_without_right"},
    )
    assert services.pause_unentitled(now=timezone.now()) == 0


@pytest.mark.parametrize("end", ["revoked", "expired", "rotated"])
def test_a_key_that_ends_stops_nothing_that_its_owner_started(shop: Shop, end: str) -> None:
    shop.add_people(2)
    assert shop.post().status_code == 202
    now = timezone.now()
    if end == "revoked":
        permissions.revoke_key(key=shop.key, actor=shop.actor, now=now)
    elif end == "rotated":
        permissions.rotate_key(key=shop.key, actor=shop.actor, now=now, overlap=timedelta(0))
    else:
        ApiKey.objects.of(shop.organization).update(expires_at=now)
    assert shop.get().status_code == 401

    assert services.launch_due(now=now) == 1
    feed.run(now=now)

    assert services.pause_unentitled(now=now) == 0
    broadcast = Broadcast.objects.of(shop.organization).get()
    assert (broadcast.status, len(shop.messages(broadcast))) == ("sending", 2)
