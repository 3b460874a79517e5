"""Approval, retry, schedule and the file of people in the console."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from broadcasts import services
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast
from events.models import Event
from messaging.models import Message
from permissions.models import Membership, Organization
from tests import factories
from tests.admin.conftest import TEXTS, Page, Tenant, signed_in, text_of

pytestmark = pytest.mark.django_db


def compose(tenant: Tenant, **fields: Any) -> Broadcast:
    draft = Draft(group=tenant.group.external_id, variations=TEXTS, name="Grande", **fields)
    return services.compose(organization=tenant.organization, owner=tenant.leader, draft=draft, now=timezone.now())


@pytest.fixture
def waiting(mine: Tenant) -> Broadcast:
    """A broadcast to three people where two may pass by themselves."""
    mine.add_person("11999990002")
    mine.add_person("11999990003")
    Organization.objects.filter(pk=mine.organization.pk).update(review_threshold=2)
    mine.organization.refresh_from_db()
    return compose(mine)


def offered(browser: Client, address: str) -> list[str]:
    return [button["url"].rstrip("/").rpartition("/")[2] for button in browser.get(address).context["buttons"]]


def test_it_waits_and_says_so(boss: Client, waiting: Broadcast, page: Page) -> None:
    assert "Aguardando a aprovação de um administrador" in text_of(boss.get(page(waiting)))
    assert offered(boss, page(waiting)) == ["approve", "cancel"]


def test_a_lone_admin_types_the_count(boss: Client, waiting: Broadcast, page: Page) -> None:
    asked = text_of(boss.get(page(waiting, "approve")))
    assert "3 pessoas recebem a mensagem" in asked
    assert 'name="confirmed"' in asked

    assert boss.post(page(waiting, "approve")).status_code == 200
    wrong = boss.post(page(waiting, "approve"), {"confirmed": "2"})
    waiting.refresh_from_db()
    assert "número exato de destinatários" in text_of(wrong)
    assert waiting.status == "pending_review"

    assert boss.post(page(waiting, "approve"), {"confirmed": "3"}).status_code == 302
    waiting.refresh_from_db()
    assert waiting.status == "queued"
    assert Event.objects.get(type="broadcast.approved").actor_type == "user"


def test_one_of_two_admins_just_agrees(mine: Tenant, boss: Client, waiting: Broadcast, page: Page) -> None:
    Membership.objects.of(mine.organization).filter(user=mine.leader).update(role="admin")

    assert 'name="confirmed"' not in text_of(boss.get(page(waiting, "approve")))
    assert boss.post(page(waiting, "approve")).status_code == 302
    waiting.refresh_from_db()
    assert waiting.status == "queued"


def test_its_owner_is_told_that_another_has_to(mine: Tenant, boss: Client, waiting: Broadcast, page: Page) -> None:
    Membership.objects.of(mine.organization).filter(user=mine.leader).update(role="admin")
    mine.leader.is_staff = True
    mine.leader.save()

    answer = signed_in(mine.leader).post(page(waiting, "approve"))

    assert "Outro administrador" in text_of(answer)
    waiting.refresh_from_db()
    assert waiting.status == "pending_review"


def test_who_only_reads_approves_nothing(mine: Tenant, waiting: Broadcast, page: Page) -> None:
    assert mine.staff(Membership.Role.VIEWER).post(page(waiting, "approve")).status_code == 403


# --- the limit itself


def change(browser: Client, tenant: Tenant, page: Page, number: int, reason: str = "") -> str:
    answer = browser.post(page(tenant.organization, "review"), {"number": str(number), "reason": reason}, follow=True)
    tenant.organization.refresh_from_db()
    return text_of(answer)


def test_an_admin_may_only_tighten_the_limit(mine: Tenant, boss: Client, page: Page) -> None:
    change(boss, mine, page, 100)
    assert mine.organization.review_threshold == 100
    assert Event.objects.get(type="limit.tightened").data == {
        "limit": "review_threshold",
        "from": 500,
        "to": 100,
        "reason": "",
    }

    assert "Só um superadministrador" in change(boss, mine, page, 101, "porque sim")
    assert mine.organization.review_threshold == 100


def test_a_super_admin_loosens_it_with_a_reason(mine: Tenant, super_admin: Client, page: Page) -> None:
    change(super_admin, mine, page, 900)
    assert mine.organization.review_threshold == 500

    change(super_admin, mine, page, 900, "loja grande")
    assert mine.organization.review_threshold == 900
    event = Event.objects.get(type="limit.loosened")
    assert (event.data["to"], event.data["reason"]) == (900, "loja grande")


@pytest.mark.parametrize("number", [-1, 1_000_001])
def test_a_limit_that_cannot_be(mine: Tenant, super_admin: Client, page: Page, number: int) -> None:
    change(super_admin, mine, page, number, "teste")

    assert mine.organization.review_threshold == 500


# --- retry, schedule, file


def test_failures_are_sent_again(mine: Tenant, boss: Client, page: Page) -> None:
    mine.add_person("11999990002")
    broadcast = mine.launched()
    assert "retry-failed" not in offered(boss, page(broadcast))
    first = Message.unscoped.filter(stream=broadcast.stream_id).order_by("position")[0]
    Message.unscoped.filter(pk=first.pk).update(status="failed", error_code="not_on_whatsapp", error_sent="no")

    assert offered(boss, page(broadcast)) == ["pause", "retry-failed", "cancel"]
    assert "1 mensagem com certeza não foi enviada" in text_of(boss.get(page(broadcast, "retry-failed")))
    assert boss.post(page(broadcast, "retry-failed")).status_code == 302
    assert Message.unscoped.get(pk=first.pk).status == "queued"


def test_a_schedule_is_said_in_the_tenants_time(mine: Tenant, boss: Client, page: Page) -> None:
    start = (timezone.now() + timedelta(days=3)).replace(hour=12, minute=30)
    broadcast = compose(mine, scheduled_at=start)

    assert f"Agendado para {start:%d/%m/%Y} 09:30" in text_of(boss.get(page(broadcast)))
    assert offered(boss, page(broadcast)) == ["pause", "cancel"]


def test_the_people_as_a_file(mine: Tenant, boss: Client, other: Tenant, page: Page) -> None:
    broadcast = mine.launched()
    address = page(broadcast, "file")
    assert address in text_of(boss.get(page(broadcast)))

    answer = boss.get(address)

    written = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert written.startswith("recipient_id;user_id;")
    assert "5511999990001" in written
    assert signed_in(factories.UserFactory.create(is_staff=True)).get(address).status_code in {302, 403}
    assert boss.get(page(other.launched(), "file")).status_code == 302
