"""Two tenants with a row of everything, and people of every role who open the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import time
from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audience import consent
from audience import services as audience
from audience.models import Contact, Group
from broadcasts import feed
from broadcasts import services as broadcasts
from broadcasts.drafts import Draft
from broadcasts.models import Broadcast
from channels_waha import services as waha
from channels_waha.models import ChannelSession
from events import services as events
from messaging import services as messaging
from messaging.models import Message, WebhookEvent
from permissions.models import Membership, Organization, User
from tests import factories

TEXTS = (
    "Oi {{nome|você}}, chegou o pão!",
    "{{nome|Olá}}: o pão novo saiu do forno.",
    "Boa notícia, {{nome|pessoal}}: tem pão quente.",
    "Pão novo para você, {{nome|colega}}.",
    "{{nome|Ei}}, veja o pão que saiu agora.",
)


@dataclass
class Tenant:
    """One organization with a row of each kind. ``mark`` stands in every name of it."""

    mark: str
    organization: Organization
    leader: User
    group: Group
    session: ChannelSession

    def add_person(self, phone: str, name: str = "") -> Any:
        return audience.add_member(
            group=self.group, given_phone=phone, now=timezone.now(), name=name or f"{self.mark} {phone}"
        )

    def compose(self, name: str = "") -> Broadcast:
        draft = Draft(group=self.group.external_id, variations=TEXTS, name=name or f"{self.mark} disparo")
        return broadcasts.compose(organization=self.organization, owner=self.leader, draft=draft, now=timezone.now())

    def launched(self) -> Broadcast:
        broadcast = self.compose()
        broadcasts.launch_due(now=timezone.now())
        feed.run(now=timezone.now())
        broadcast.refresh_from_db()
        return broadcast

    def settle(self, broadcast: Broadcast, *statuses: str) -> None:
        """As if the engine had brought the broadcast's first messages to these statuses."""
        found = Message.unscoped.filter(stream=broadcast.stream_id).order_by("position")
        for message, status in zip(found, statuses, strict=False):
            code = "outcome_unknown" if status == "in_doubt" else ""
            Message.unscoped.filter(pk=message.pk).update(status=status, error_code=code)

    def staff(self, role: Membership.Role) -> Client:
        """A signed-in browser of a person with this role, in this organization alone."""
        person = factories.UserFactory.create(username=f"{self.mark}-{role}", is_staff=True)
        factories.MembershipFactory.create(organization=self.organization, user=person, role=role)
        return signed_in(person)


def signed_in(person: User) -> Client:
    browser = Client()
    browser.force_login(person)
    return browser


def make_tenant(mark: str) -> Tenant:
    """A tenant with one of everything: people, teams, keys, numbers, contacts, broadcasts, messages, events."""
    organization = factories.OrganizationFactory.create(name=f"{mark} loja", slug=mark.lower())
    leader = factories.MemberFactory.create(organization=organization, username=f"{mark}-lider")
    team = factories.TeamFactory.create(organization=organization, name=f"{mark} equipe")
    factories.TeamMemberFactory.create(team=team, organization=organization, user=leader)
    factories.ApiKeyFactory.create(organization=organization, owner=leader, name=f"{mark} chave")
    group = factories.GroupFactory.create(
        organization=organization, team=team, name=f"{mark} grupo", external_id=f"grp-{mark}"
    )
    session = waha.create_session(
        organization=organization, display_name=f"{mark} número", actor=events.SYSTEM, now=timezone.now()
    )
    tenant = Tenant(mark, organization, leader, group, session)
    _open(tenant)
    tenant.add_person("11999990001", f"{mark} Maria")
    tenant.add_person("11 99", f"{mark} sem telefone")
    _leave_traces(tenant)
    return tenant


def _open(tenant: Tenant) -> None:
    """A connected number, open all day long and old enough for broadcasts."""
    channel = tenant.session.channel
    type(channel).unscoped.filter(pk=channel.pk).update(
        in_use_since="2020-01-01", window_opens=time(0), window_closes=time(0)
    )
    ChannelSession.unscoped.filter(pk=tenant.session.pk).update(
        status="WORKING", phone_number=f"+55{tenant.mark}", metadata={}
    )
    messaging.set_connected(channel.pk, connected=True, now=timezone.now())
    tenant.session.refresh_from_db()


def _leave_traces(tenant: Tenant) -> None:
    tenant.launched()
    blocked = audience.add_contact(
        organization=tenant.organization, phone="11999990009", now=timezone.now(), name=f"{tenant.mark} Bloqueado"
    )
    actor = events.user(tenant.leader)
    consent.block(contact=blocked, reason=f"{tenant.mark} pediu", actor=actor, now=timezone.now())
    WebhookEvent.objects.create(
        organization=tenant.organization,
        channel=tenant.session.channel,
        provider="waha",
        event_type="message.any",
        body=f'{{"text": "{tenant.mark} <script>alert(1)</script>"}}'.encode(),
    )


@pytest.fixture
def mine(db: Any) -> Tenant:
    return make_tenant("MINHA")


@pytest.fixture
def other(db: Any) -> Tenant:
    return make_tenant("ALHEIA")


@pytest.fixture
def boss(mine: Tenant) -> Client:
    """An admin of ``mine``."""
    return mine.staff(Membership.Role.ADMIN)


@pytest.fixture
def super_admin(db: Any) -> Client:
    return signed_in(factories.UserFactory.create(username="raiz", is_staff=True, is_superuser=True))


@pytest.fixture
def contact(mine: Tenant) -> Contact:
    return Contact.objects.of(mine.organization).get(name="MINHA Maria")


Page = Callable[..., str]


@pytest.fixture
def page() -> Page:
    """The address of an object's page: ``page(row)``, ``page(row, "pause")``."""

    def address(row: Model, name: str = "change") -> str:
        return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{name}", args=[row.pk])

    return address


def registered() -> list[tuple[type[Model], Any]]:
    return list(admin.site._registry.items())


def text_of(response: Any) -> str:
    return str(response.content.decode())
