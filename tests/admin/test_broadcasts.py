"""Broadcasts in the console: figures from the rows, and moves through the services."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from broadcasts import services
from broadcasts.models import Broadcast
from events import services as events
from events.models import Event
from messaging import services as messaging
from permissions import ids
from permissions.models import Membership
from tests.admin.conftest import Page, Tenant, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def broadcast(mine: Tenant) -> Broadcast:
    """Ten people fed or waiting, one line without a phone."""
    for number in range(10):
        mine.add_person(f"1198888{number:04}")
    broadcast = mine.launched()
    mine.settle(broadcast, "read", "delivered", "sent", "failed", "in_doubt")
    return broadcast


def test_the_list_counts_each_broadcast(mine: Tenant, boss: Client, broadcast: Broadcast) -> None:
    shown = text_of(boss.get(reverse("admin:broadcasts_broadcast_changelist")))

    assert "3 de 11 enviados" in shown
    assert "2 falharam" in shown
    assert "enviando" in shown


def test_the_page_says_every_count_and_reason(boss: Client, broadcast: Broadcast, page: Page) -> None:
    response = boss.get(page(broadcast))

    numbers = {figure["word"]: figure["number"] for figure in response.context["figures"]}
    assert len(numbers) == 12
    assert sum(numbers.values()) == 12
    assert (numbers["read"], numbers["failed"], numbers["in_doubt"], numbers["excluded"]) == (1, 1, 1, 1)
    shown = text_of(response)
    assert "Enviando: 3 de 11 já saíram." in shown
    assert "o telefone não é válido" in shown
    assert "não se sabe se foi enviada" in shown


def test_the_live_part_is_a_fragment_that_stops(mine: Tenant, boss: Client, broadcast: Broadcast, page: Page) -> None:
    running = boss.get(page(broadcast, "live"))
    assert running["X-Live"] == "1"
    assert running["Cache-Control"].startswith("no-store")
    assert 'data-live="2"' in text_of(running)
    assert "<html" not in text_of(running)

    mine.settle(broadcast, *["read"] * 11)
    services.cancel(broadcast=broadcast, actor=events.user(mine.leader), now=timezone.now() - timedelta(days=2))
    assert 'data-live=""' in text_of(boss.get(page(broadcast, "live")))


def test_it_says_what_holds_it(mine: Tenant, boss: Client, broadcast: Broadcast, page: Page) -> None:
    messaging.set_connected(mine.session.channel_id, connected=False, now=timezone.now())

    assert "o número está desconectado" in text_of(boss.get(page(broadcast)))


def test_moves_ask_first_and_say_the_count(boss: Client, broadcast: Broadcast, page: Page) -> None:
    asked = boss.get(page(broadcast, "cancel"))
    broadcast.refresh_from_db()
    assert "6 pessoas nunca vão receber esta mensagem" in text_of(asked)
    assert broadcast.status == "sending"

    for move, status in (("pause", "paused"), ("resume", "sending"), ("cancel", "canceled")):
        assert boss.post(page(broadcast, move)).status_code == 302
        broadcast.refresh_from_db()
        assert broadcast.status == status
    assert "não é mais possível" in text_of(boss.post(page(broadcast, "pause"), follow=True)).lower()


def test_a_move_names_its_person_in_the_audit_trail(
    mine: Tenant, boss: Client, broadcast: Broadcast, page: Page
) -> None:
    boss.post(page(broadcast, "pause"))

    event = Event.objects.get(type="broadcast.paused", subject=ids.encode(ids.BROADCAST, broadcast.pk))
    assert event.actor_type == "user"
    assert "MINHA-admin" in text_of(boss.get(page(event)))


def test_only_possible_moves_are_offered(mine: Tenant, boss: Client, broadcast: Broadcast, page: Page) -> None:
    def offered(browser: Client) -> list[str]:
        return [
            button["url"].rstrip("/").rpartition("/")[2] for button in browser.get(page(broadcast)).context["buttons"]
        ]

    assert offered(boss) == ["pause", "cancel"]
    boss.post(page(broadcast, "pause"))
    assert offered(boss) == ["resume", "cancel"]
    assert offered(mine.staff(Membership.Role.VIEWER)) == []
    boss.post(page(broadcast, "cancel"))
    assert offered(boss) == []


def test_people_are_found_by_what_became_of_them(boss: Client, broadcast: Broadcast) -> None:
    def people(**query: str) -> list[str]:
        address = reverse("admin:broadcasts_recipient_changelist")
        response = boss.get(address, {"broadcast": str(broadcast.pk)} | query)
        return [
            person.message.status if person.message else person.state for person in response.context["cl"].result_list
        ]

    assert len(people()) == 12
    assert people(status="failed") == ["failed", "in_doubt"]
    assert people(status="in_doubt") == ["in_doubt"]
    assert people(status="excluded") == ["excluded"]
    assert people(status="read") == ["read"]
    assert len(people(status="nonsense")) == 12


def test_a_person_leads_to_his_message(boss: Client, broadcast: Broadcast, page: Page) -> None:
    address = reverse("admin:broadcasts_recipient_changelist")
    listed = boss.get(address, {"broadcast": str(broadcast.pk), "status": "in_doubt"})
    (person,) = listed.context["cl"].result_list

    shown = text_of(boss.get(page(person)))

    assert reverse("admin:messaging_message_change", args=[person.message_id]) in shown
    assert "o WhatsApp não respondeu" in text_of(
        boss.get(reverse("admin:messaging_message_change", args=[person.message_id]))
    )


def test_the_first_page_shows_what_runs_and_the_numbers(mine: Tenant, boss: Client, broadcast: Broadcast) -> None:
    shown = text_of(boss.get("/admin/"))

    assert str(broadcast) in shown
    assert "MINHA número" in shown
    assert "Conectado" in shown
