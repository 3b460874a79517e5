"""A tenant to measure with: a leader with a key, numbers old enough, groups filled by sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time
from typing import Any

from django.utils import timezone

from audience import services as audience
from audience.models import Group
from bench import owner
from broadcasts.drafts import Draft
from events import services as events
from messaging import services as messaging
from messaging.models import Channel
from permissions import ids
from permissions import services as permissions
from permissions.models import Membership, Organization, Team, TeamMember, User

TEXTS = tuple(
    f"{greeting} {{{{nome|você}}}}, o curso {{{{curso}}}} {{já|agora}} tem turma em {{{{cidade}}}}."
    for greeting in ("Oi", "Olá", "Boa notícia:", "Veja só,", "Novidade,")
)
_REASON = "benchmark"

# Of a hundred lines: two no phones, two doubles, two opted out, one on hold, two without a value, one too long.
_CONTACTS = """
INSERT INTO contacts (id, organization_id, identity, name, attributes, is_blocked, is_on_hold, blocked_reason,
    created_at, updated_at)
SELECT uuid7(), %s, (5511900000000 + %s + n)::text, 'Pessoa ' || n,
    CASE WHEN n %% 50 = 5 THEN '{}'::jsonb
         WHEN n %% 100 = 6 THEN jsonb_build_object('cidade', repeat('x', 4200))
         ELSE jsonb_build_object('cidade', 'Cidade ' || n %% 50, 'plano', 'ouro') END,
    n %% 50 = 3, n %% 100 = 4, '', now(), now()
FROM generate_series(0, %s - 1) AS n
"""
_LINES = """
INSERT INTO group_members (id, organization_id, group_id, contact_id, given_phone, name, status, created_at)
SELECT uuid7(), %s, %s,
    CASE WHEN n %% 50 <> 1 THEN (SELECT c.id FROM contacts c WHERE c.organization_id = %s
        AND c.identity = (5511900000000 + %s + CASE WHEN n %% 50 = 2 THEN n - 2 ELSE n END)::text) END,
    '+' || (5511900000000 + %s + n), '', 'ACTIVE', now() + n * interval '1 microsecond'
FROM generate_series(0, %s - 1) AS n
"""


@dataclass(slots=True)
class Shop:
    """One organization. ``root`` is the installation's super-admin."""

    organization: Organization
    root: User
    leader: User
    team: Team
    key: str

    def group(self, name: str, *, people: int, first: int = 0) -> Group:
        """A group of so many lines, each reason of being left out among them; ``first`` keeps people apart."""
        group = self.empty_group(name)
        mine = self.organization.pk
        with owner.connected() as connection:
            connection.execute(_CONTACTS, [mine, first, people])
            # Else the next statement is planned for a table without rows.
            connection.execute("ANALYZE contacts")
            connection.execute(_LINES, [mine, group.pk, mine, first, first, people])
            connection.execute("ANALYZE group_members")
        return group

    def empty_group(self, name: str) -> Group:
        return audience.create_group(
            organization=self.organization, external_id=name, name=name, team=self.team, now=timezone.now()
        )

    def number(self, name: str) -> Channel:
        """A number that is connected as far as the engine knows, open all day and old enough."""
        channel = messaging.create_channel(organization=self.organization, kind="waha", name=name, now=timezone.now())
        messaging.set_connected(channel.pk, connected=True, now=timezone.now())
        self.open(channel)
        return channel

    def open(self, channel: Channel) -> None:
        """Years old, at any hour."""
        by: dict[str, Any] = {"reason": _REASON, "by": self.root, "now": timezone.now()}
        messaging.set_age(channel.pk, since=timezone.now().date().replace(year=2020, day=1), **by)
        messaging.set_window(channel.pk, opens=time(0), closes=time(0), **by)

    def draft(self, group: Group, channels: list[Channel]) -> Draft:
        return Draft(
            group=group.external_id,
            variations=TEXTS,
            variables={"curso": "Python"},
            channels=[ids.encode(ids.CHANNEL, channel.pk) for channel in channels],
        )


def open_shop(slug: str) -> Shop:
    """A new organization."""
    now = timezone.now()
    root, _made = User.objects.get_or_create(username="root", defaults={"is_superuser": True, "is_staff": True})
    organization = permissions.create_organization(
        name=slug, slug=slug, time_zone="America/Sao_Paulo", region="BR", actor=events.user(root), now=now
    )
    leader = User.objects.create_user(f"lider-{slug}")
    permissions.set_role(
        organization=organization, user=leader, role=Membership.Role.ADMIN, actor=events.user(root), now=now
    )
    team = Team.objects.create(organization=organization, name="Cursos")
    TeamMember.objects.create(organization=organization, team=team, user=leader, role=TeamMember.Role.LEADER)
    _key, plain = permissions.issue_key(
        organization=organization, owner=leader, name="bench", actor=events.user(root), now=now
    )
    return Shop(organization, root, leader, team, plain)
