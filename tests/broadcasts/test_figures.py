"""Counters are counted from the rows: exclusive words that sum up, cumulative figures beside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broadcasts import selectors
from broadcasts.models import Broadcast, Recipient
from messaging.models import Message
from tests.broadcasts.conftest import Shop

pytestmark = pytest.mark.django_db

STATUSES = (
    "queued",
    "claimed",
    "sending",
    "in_doubt",
    "sent",
    "delivered",
    "read",
    "played",
    "failed",
    "canceled",
    "expired",
    "skipped",
)


@pytest.fixture
def everything(shop: Shop, settings: object) -> Broadcast:
    """A message in each status, somebody left out in each way, one who waits, one excluded."""
    shop.add_people(17)
    shop.add("nada")
    broadcast = shop.launched()
    people = shop.recipients(broadcast)
    for person, status in zip(people, STATUSES, strict=False):
        Message.objects.create(
            id=person.message_id,
            organization=shop.organization,
            channel=shop.channel,
            stream_id=broadcast.stream_id,
            contact=person.contact,
            direction="out",
            address=person.phone,
            status=status,
            error_code={"failed": "not_on_whatsapp", "skipped": "contact_blocked"}.get(status, ""),
            provider_id=f"3EB0{person.position}" if status in {"sent", "read"} else None,
            attempt=1,
        )
        _set(person, "fed")
    for person, state in zip(people[12:], ("skipped", "canceled", "expired"), strict=False):
        _set(person, state)
    return broadcast


def _set(person: Recipient, state: str) -> None:
    Recipient.unscoped.filter(pk=person.pk).update(state=state)


def test_counts_are_exclusive_and_sum_up(everything: Broadcast) -> None:
    tally = selectors.tally(everything)

    assert tuple(tally.counts) == selectors.WORDS
    assert dict(tally.counts) == {
        "pending": 2,
        "queued": 2,
        "sending": 1,
        "in_doubt": 1,
        "sent": 1,
        "delivered": 1,
        "read": 2,
        "failed": 1,
        "canceled": 2,
        "expired": 2,
        "skipped": 2,
        "excluded": 1,
    }
    assert tally.total_count == 17
    assert sum(tally.counts.values()) == tally.total_count + tally.counts["excluded"]


def test_cumulative_figures(everything: Broadcast) -> None:
    tally = selectors.tally(everything)

    assert (tally.sent_count, tally.delivered_count, tally.read_count, tally.failed_count) == (4, 3, 2, 2)


def test_what_each_number_still_has_to_send(shop: Shop, everything: Broadcast) -> None:
    assert selectors.tally(everything).remaining == {shop.channel.pk: 5}


def test_each_broadcast_has_its_own_figures(shop: Shop, everything: Broadcast) -> None:
    other = shop.compose()

    with CaptureQueriesContext(connection) as queries:
        tallies = selectors.tallies([everything, other])

    assert len(queries) == 1
    assert tallies[other.pk].counts["pending"] == 17
    assert tallies[everything.pk].counts["pending"] == 2


def test_every_word_finds_whom_it_counts(everything: Broadcast) -> None:
    counts = selectors.tally(everything).counts

    for word, number in counts.items():
        # Who is in doubt reads as failed, and is found by both words.
        found = counts["failed"] + counts["in_doubt"] if word == "failed" else number
        assert selectors.recipients(everything, status=word).count() == found, word
    assert selectors.recipients(everything).count() == 18


def test_a_live_figure_is_kept_for_a_while(shop: Shop, everything: Broadcast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "LIVE_SECONDS", 3600.0)
    before = selectors.live_tally(everything)
    Message.objects.of(shop.organization).filter(status="queued").update(status="sent")
    assert selectors.live_tally(everything) is before

    monkeypatch.setattr(selectors, "LIVE_SECONDS", 0.0)
    assert selectors.live_tally(everything).counts["sent"] == 2


def test_a_late_ack_counts_after_completion(shop: Shop, everything: Broadcast) -> None:
    Broadcast.objects.of(shop.organization).update(status="completed")
    Message.objects.of(shop.organization).filter(status="in_doubt").update(status="read")

    tally = selectors.tally(everything)

    assert (tally.read_count, tally.failed_count) == (3, 1)


def test_figures_of_nothing() -> None:
    assert selectors.tallies([]) == {}


def test_organizations_see_their_own(make_shop: Callable[[], Shop], everything: Broadcast) -> None:
    stranger = make_shop()

    assert selectors.find(organization=stranger.organization, reference=everything.public_id) is None
