"""A tenant for the demo and the flow tests: an admin, a leader with a key, a group, and paired numbers."""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from datetime import time as clock

from audience import consent
from audience import services as audience
from audience.models import Group
from broadcast_project.demo.client import Client
from channels_waha import lifecycle
from channels_waha import services as waha
from channels_waha.models import ChannelSession
from events import services as events
from messaging import services as messaging
from permissions import ids
from permissions import services as permissions
from permissions.models import Membership, Organization, Team, TeamMember, User

# fmt: off
NAMES = [
    "Ana", "Bruno", "Carla", "Diego", "Elisa", "Fábio", "Gabriela", "Hugo", "Inês", "João", "Karina", "Lucas",
    "Marina", "Nuno", "Olívia", "Paulo", "Quésia", "Rafael", "Sofia", "Tiago", "Úrsula", "Vitor", "Wanda", "Xavier",
    "Yara", "Zeca", "Alice", "Bento", "Célia", "Davi", "Ester", "Flávia", "Gil", "Heitor", "Iara", "Jorge",
]
# fmt: on
_PAIRING_SECONDS = 60.0
_AGE = timedelta(days=60)
_REASON = "demonstration on the simulator"


@dataclass(frozen=True, slots=True)
class Seeded:
    """What the seed made, as plain values: ids as the contract has them, the key in full."""

    organization: str
    admin: str
    password: str
    key: str
    group: str
    channels: list[str]
    sessions: list[str]
    reachable: int


def seed(*, simulator: Client, people: int, numbers: int, time_zone: str, now: datetime) -> Seeded:
    """Make the tenant and pair its numbers. ``people`` counts lines: three of them are reached by nothing.

    One line has an invalid number, one is another line without the ninth digit, one person opted out.
    """
    organization = permissions.create_organization(
        name="Escola Demonstração", slug="escola", time_zone=time_zone, region="BR", actor=events.SYSTEM, now=now
    )
    root = User.objects.create_superuser("root", password=None)
    password = secrets.token_urlsafe(12)
    leader = _people(organization, password, now)
    group = _group(organization, leader, people, now)
    _key, plain = permissions.issue_key(
        organization=organization, owner=leader, name="Demonstração", actor=events.user(root), now=now
    )
    sessions = [_pair(organization, simulator, number, root, now) for number in range(1, numbers + 1)]
    return Seeded(
        organization=organization.slug,
        admin="dona",
        password=password,
        key=plain,
        group=group.external_id,
        channels=[ids.encode(ids.CHANNEL, session.channel_id) for session in sessions],
        sessions=[session.session_name for session in sessions],
        reachable=people - 3,
    )


def as_json(seeded: Seeded) -> dict[str, object]:
    """For the process that asked for the seed."""
    return asdict(seeded)


def _people(organization: Organization, password: str, now: datetime) -> User:
    """The tenant's admin, who signs in, and the leader of its team, who owns the key."""
    admin = User.objects.create_user("dona", password=password, first_name="Dona", is_staff=True)
    leader = User.objects.create_user("lider", first_name="Líder")
    for person, role in ((admin, Membership.Role.ADMIN), (leader, Membership.Role.VIEWER)):
        permissions.set_role(organization=organization, user=person, role=role, actor=events.SYSTEM, now=now)
    team = Team.objects.create(organization=organization, name="Cursos")
    TeamMember.objects.create(organization=organization, team=team, user=leader, role=TeamMember.Role.LEADER)
    return leader


def _group(organization: Organization, leader: User, people: int, now: datetime) -> Group:
    team = Team.objects.of(organization).get()
    group = audience.create_group(
        organization=organization, external_id="grp_123", name="Alunos de Python", team=team, now=now
    )
    for place in range(people - 2):
        name = f"{NAMES[place % len(NAMES)]}{'' if place < len(NAMES) else f' {place // len(NAMES) + 1}'}"
        audience.add_member(group=group, given_phone=f"+55 11 9{8000_0000 + place:08}"[:20], name=name, now=now)
    # The first person again, without the ninth digit; and a number that is none.
    audience.add_member(group=group, given_phone="551180000000", name="Ana (de novo)", now=now)
    audience.add_member(group=group, given_phone="11 1234", name="Número incompleto", now=now)
    opted_out = group.members.select_related("contact").get(given_phone__endswith=f"{8000_0000 + people - 3:08}")
    assert opted_out.contact is not None
    consent.block(
        contact=opted_out.contact, reason="pediu para sair", actor=events.user(leader), now=now, by_contact=True
    )
    return group


def _pair(organization: Organization, simulator: Client, number: int, root: User, now: datetime) -> ChannelSession:
    """One number, connected as a person would: its QR code is shown, and the simulator's phone scans it."""
    session = waha.create_session(
        organization=organization, display_name=f"Número {number}", actor=events.user(root), now=now
    )
    session = lifecycle.connect(session)
    give_up = time.monotonic() + _PAIRING_SECONDS
    scanned = False
    while session.status != ChannelSession.Status.WORKING:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{session.session_name} is still {session.status}")
        if session.status == ChannelSession.Status.SCAN_QR_CODE and not scanned:
            path = f"/control/sessions/{session.session_name}/scan"
            simulator.post(path, {"phone": f"55119700{number:05}", "push_name": "Escola"})
            scanned = True
        time.sleep(0.2)
        session = lifecycle.refresh(session)
    messaging.set_age(session.channel_id, since=(now - _AGE).date(), reason=_REASON, by=root, now=now)
    messaging.set_window(session.channel_id, opens=clock(0), closes=clock(0), reason=_REASON, by=root, now=now)
    return session
