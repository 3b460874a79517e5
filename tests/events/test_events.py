"""What happened is appended, read by its organization, and never changed."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction

from events import selectors, services
from events.models import Event
from permissions import ids
from tests import factories
from tests.factories import NOON

pytestmark = pytest.mark.django_db


def record(organization_id: UUID | None, kind: str, subject: str = "bc_1", minutes: int = 0, **data: str) -> Event:
    return services.record(
        organization_id=organization_id,
        type=kind,
        subject=subject,
        actor=services.SYSTEM,
        now=NOON + timedelta(minutes=minutes),
        data=dict(data),
    )


def test_an_event_names_who_what_and_when() -> None:
    key = factories.ApiKeyFactory.create()
    by_key = services.record(
        organization_id=key.organization_id,
        type="broadcast.paused",
        subject="bc_1",
        actor=services.api_key(key),
        now=NOON,
        data={"from": "sending", "to": "paused"},
    )
    by_person = services.user(key.owner)

    kept = Event.objects.get(pk=by_key.pk)
    assert (kept.actor_type, kept.actor) == ("api_key", ids.encode("key", key.pk))
    assert (by_person.type, by_person.id) == ("user", ids.encode("usr", key.owner_id))
    assert (kept.created_at, kept.data) == (NOON, {"from": "sending", "to": "paused"})


def test_an_event_is_never_changed_or_deleted() -> None:
    event = record(None, "broadcast.paused")
    event.type = "broadcast.resumed"

    with pytest.raises(TypeError, match="append-only"):
        event.save()
    with pytest.raises(TypeError, match="append-only"):
        event.delete()
    assert Event.objects.get(pk=event.pk).type == "broadcast.paused"


def test_an_event_goes_with_its_transaction() -> None:
    def fails() -> None:
        with transaction.atomic():
            record(None, "broadcast.paused")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not Event.objects.exists()


def test_an_organization_reads_its_own_newest_first() -> None:
    ours, theirs = factories.OrganizationFactory.create_batch(2)
    first = record(ours.pk, "broadcast.created")
    second = record(ours.pk, "broadcast.paused", minutes=1)
    other = record(ours.pk, "broadcasting", subject="bc_2", minutes=2)
    record(theirs.pk, "broadcast.created")
    record(None, "broadcast.created")

    assert list(selectors.trail(ours.pk)) == [other, second, first]
    assert list(selectors.of_subject(ours.pk, "bc_1")) == [second, first]
    assert list(selectors.of_type(ours.pk, "broadcast.")) == [second, first]
    assert list(selectors.of_type(ours.pk, "broadcast.paused")) == [second]
