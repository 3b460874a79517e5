"""Contacts and groups in the console."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audience.models import ConsentEvent, Contact, Group, GroupMember
from broadcasts import feed
from messaging import db, gate, lanes
from messaging.models import Message
from permissions.models import Membership
from tests.admin.conftest import Page, Tenant, text_of

Role = Membership.Role
pytestmark = pytest.mark.django_db


def test_a_block_holds_at_once_and_is_written_down(mine: Tenant, boss: Client, contact: Contact, page: Page) -> None:
    assert boss.post(page(contact, "block"), {"reason": ""}).status_code == 200
    assert boss.post(page(contact, "block"), {"reason": "Pediu no balcão"}).status_code == 302

    contact.refresh_from_db()
    line = ConsentEvent.objects.of(mine.organization).get(contact=contact)
    assert (contact.is_blocked, line.reason) == (True, "Pediu no balcão")
    shown = text_of(boss.get(page(contact)))
    assert "Pediu no balcão" in shown
    assert "MINHA-admin" in shown


def test_a_block_stops_what_is_queued(mine: Tenant, boss: Client, contact: Contact, page: Page) -> None:
    broadcast = mine.launched()
    message = Message.objects.of(mine.organization).get(stream=broadcast.stream_id, contact=contact)
    boss.post(page(contact, "block"), {"reason": "Pediu"})

    channel = mine.session.channel_id
    Message.unscoped.exclude(pk=message.pk).delete()
    db.rows("UPDATE lanes SET next_at = clock_timestamp() - interval '1 minute' WHERE channel_id = %s", [channel])
    (claim,) = lanes.claim(limit=5)
    assert claim.message_id == message.pk
    assert gate.ask(claim, None).code == "contact_blocked"
    message.refresh_from_db()
    assert message.status == "skipped"


def test_a_block_leaves_out_of_the_next_broadcast(mine: Tenant, boss: Client, contact: Contact, page: Page) -> None:
    mine.add_person("11977770001")
    boss.post(page(contact, "block"), {"reason": "Pediu"})

    broadcast = mine.launched()
    feed.run(now=timezone.now())

    states = dict(broadcast.recipients.values_list("contact", "code"))
    assert states[contact.pk] == "opted_out"


def test_only_admins_unblock(mine: Tenant, boss: Client, contact: Contact, page: Page) -> None:
    attendant = mine.staff(Role.ATTENDANT)
    assert attendant.post(page(contact, "block"), {"reason": "Pediu"}).status_code == 302
    assert attendant.post(page(contact, "unblock"), {"reason": "x"}).status_code == 403
    assert boss.post(page(contact, "unblock"), {"reason": "Pediu para voltar"}).status_code == 302

    contact.refresh_from_db()
    assert not contact.is_blocked
    assert mine.staff(Role.VIEWER).post(page(contact, "block"), {"reason": "x"}).status_code == 403


def test_a_new_contact_by_a_phone_as_it_is_written(mine: Tenant, boss: Client) -> None:
    address = reverse("admin:audience_contact_add")
    data = {"organization": mine.organization.pk, "name": "Zé"}

    assert boss.post(address, data | {"phone": "(11) 98765-4321"}).status_code == 302
    wrong = boss.post(address, data | {"phone": "123"})

    assert Contact.objects.of(mine.organization).get(name="Zé").identity == "5511987654321"
    assert wrong.context["form"].non_field_errors()


def test_a_member_with_a_wrong_phone_says_why(mine: Tenant, boss: Client, page: Page) -> None:
    shown = text_of(boss.post(page(mine.group, "add-member"), {"given_phone": "5,51E+12", "name": "Ana"}, follow=True))
    assert "uma planilha cortou o número" in shown
    assert "nenhum disparo chega a esta linha" in shown
    local = {"given_phone": "99999-0001", "name": "Bia"}
    assert "falta o DDD" in text_of(boss.post(page(mine.group, "add-member"), local, follow=True))

    members = boss.get(reverse("admin:audience_groupmember_changelist"), {"group": str(mine.group.pk)})
    assert "uma planilha cortou o número" in text_of(members)


def test_members_come_and_go(mine: Tenant, boss: Client, page: Page) -> None:
    boss.post(page(mine.group, "add-member"), {"given_phone": "11 98888-7777", "name": "Nova"})
    member = GroupMember.objects.of(mine.organization).get(name="Nova")
    assert member.contact is not None
    assert boss.get(page(mine.group)).context["original"].active_members == 3

    boss.post(page(member, "deactivate"))

    member.refresh_from_db()
    assert member.status == "INACTIVE"
    assert boss.get(page(mine.group)).context["original"].active_members == 2


def test_a_group_needs_somebody(mine: Tenant, boss: Client) -> None:
    address = reverse("admin:audience_group_add")
    data = {"organization": mine.organization.pk, "name": "VIP", "external_id": "vip"}

    assert boss.post(address, data).context["form"].non_field_errors()
    assert boss.post(address, data | {"owner": mine.leader.pk}).status_code == 302
    assert boss.post(address, data | {"owner": mine.leader.pk}).context["form"].non_field_errors()

    assert Group.objects.of(mine.organization).get(external_id="vip").owner == mine.leader


def test_markup_is_shown_as_text(mine: Tenant, boss: Client, page: Page) -> None:
    mine.add_person("11966660001", "<script>alert('x')</script>")
    contact = Contact.objects.of(mine.organization).get(identity="5511966660001")
    broadcast = mine.compose(name="<img src=x onerror=alert(1)>")

    for address in (
        page(contact),
        page(contact, "block"),
        reverse("admin:audience_contact_changelist"),
        reverse("admin:audience_groupmember_changelist"),
        reverse("admin:broadcasts_recipient_changelist"),
        reverse("admin:broadcasts_broadcast_changelist"),
        page(broadcast),
        page(broadcast, "live"),
        "/admin/",
    ):
        shown = text_of(boss.get(address))
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
