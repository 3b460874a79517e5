"""Events, raw webhooks, periodic runs and numbers in the console."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from events.models import Event
from messaging.models import Channel, CronRun, WebhookEvent
from permissions.admin_base import CappedPaginator
from permissions.models import Membership
from tests.admin.conftest import Page, Tenant, text_of

pytestmark = pytest.mark.django_db


def test_a_raw_body_is_text_and_for_admins(mine: Tenant, boss: Client, page: Page) -> None:
    event = WebhookEvent.objects.get(organization=mine.organization)

    shown = text_of(boss.get(page(event)))

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script>alert(1)" not in shown
    assert mine.staff(Membership.Role.VIEWER).get(page(event)).status_code == 403


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b'{"a": "\\ud800"}', b"[" * 100_000, b"", b'{"a": NaN}'])
def test_any_body_can_be_shown(mine: Tenant, boss: Client, page: Page, body: bytes) -> None:
    event = WebhookEvent.objects.create(organization=mine.organization, provider="waha", body=body)

    assert boss.get(page(event)).status_code == 200


def test_what_belongs_to_nobody_is_the_super_admins(
    boss: Client, super_admin: Client, mine: Tenant, page: Page
) -> None:
    event = WebhookEvent.objects.create(organization=None, provider="meta", body=b"{}")

    assert boss.get(page(event)).status_code == 302
    assert super_admin.get(page(event)).status_code == 200


def test_events_read_as_sentences(mine: Tenant, boss: Client, page: Page) -> None:
    shown = text_of(boss.get(reverse("admin:events_event_changelist")))
    assert "Disparo criado" in shown
    assert "Sessão do WhatsApp criada" in shown

    created = Event.objects.get(type="broadcast.created", organization=mine.organization)
    assert "/admin/broadcasts/broadcast/" in text_of(boss.get(page(created)))
    only = boss.get(reverse("admin:events_event_changelist"), {"type": "broadcast.created"})
    assert [event.pk for event in only.context["cl"].result_list] == [created.pk]


def test_periodic_runs(super_admin: Client) -> None:
    now = timezone.now()
    CronRun.objects.create(name="sync-sessions", started_at=now, finished_at=now + timedelta(seconds=1.5))
    CronRun.objects.create(name="webhook-replay", started_at=now, errors=["ring: OSError"])

    shown = text_of(super_admin.get(reverse("admin:messaging_cronrun_changelist")))

    assert "1.5 s" in shown
    assert "ring: OSError" in shown


def test_a_number_shows_its_figures(mine: Tenant, boss: Client, page: Page) -> None:
    shown = text_of(boss.get(page(mine.session.channel)))

    assert "0 / 1000" in shown
    assert "o dia inteiro" in shown


def test_the_super_admin_loosens_a_limit_with_a_reason(mine: Tenant, super_admin: Client, page: Page) -> None:
    channel = mine.session.channel
    assert super_admin.post(page(channel, "age"), {"since": "2999-01-01", "reason": "x"}).status_code == 200
    assert super_admin.post(page(channel, "age"), {"since": "2019-05-01", "reason": ""}).status_code == 200
    assert super_admin.post(page(channel, "age"), {"since": "2019-05-01", "reason": "antigo"}).status_code == 302
    hours = {"opens": "08:00", "closes": "18:00", "reason": "pedido da loja"}
    assert super_admin.post(page(channel, "window"), hours).status_code == 302

    fresh = Channel.unscoped.get(pk=channel.pk)
    assert str(fresh.in_use_since) == "2019-05-01"
    assert str(fresh.window_opens) == "08:00:00"
    assert Event.objects.filter(type="limit.loosened", organization=mine.organization).count() == 2


def test_an_admin_marks_a_reserve_and_has_it_take_over(mine: Tenant, boss: Client, page: Page) -> None:
    channel = mine.session.channel
    for step, is_reserve in (("reserve", True), ("take-over", False)):
        assert boss.post(page(channel, step)).status_code == 302
        assert Channel.unscoped.get(pk=channel.pk).is_reserve is is_reserve
    told = Event.objects.filter(type="channel.reserve", organization=mine.organization).order_by("pk")
    assert [event.data["to"] for event in told] == ["reserve", "in use"]


def test_no_page_counts_more_than_its_cap(mine: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "most", 3)
    rows = Event.objects.order_by("-pk")

    paginator = CappedPaginator(rows, 2)

    assert (paginator.count, paginator.num_pages, paginator.is_capped) == (3, 2, True)
