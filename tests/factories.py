"""Rows for tests. Each factory makes what it needs; pass ``organization=`` to keep rows together.

Call ``XFactory.create(…)``: it is typed, which factory_boy's short form ``XFactory(…)`` is not.
"""

# mypy: disable-error-code="no-untyped-call,attr-defined"

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

import factory
from django.contrib.auth.hashers import make_password
from factory.base import Factory

from audience.models import Contact, Group, GroupMember
from channels_waha.models import ChannelSession
from messaging import services as messaging
from messaging.models import Channel
from permissions import keys
from permissions.models import ApiKey, Membership, Organization, Team, TeamMember, User

# A Tuesday noon in São Paulo, inside every courtesy window.
NOON = datetime(2026, 12, 1, 15, 0, tzinfo=UTC)


PASSWORD = "senha de teste"
# Hashing is slow by design: once for all the people of a run.
_hashed = functools.cache(make_password)


class OrganizationFactory(factory.django.DjangoModelFactory[Organization]):
    class Meta:
        model = Organization

    name = factory.Sequence(lambda number: f"Loja {number}")
    slug = factory.Sequence(lambda number: f"loja-{number}")


class UserFactory(factory.django.DjangoModelFactory[User]):
    """A person who belongs to no organization yet; the password is PASSWORD."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda number: f"pessoa-{number}")
    password = factory.LazyFunction(lambda: _hashed(PASSWORD))


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    class Meta:
        model = Membership

    organization = factory.SubFactory(OrganizationFactory)
    user = factory.SubFactory(UserFactory)
    role = Membership.Role.ATTENDANT


class MemberFactory(UserFactory):
    """A person with an active membership of ``organization``."""

    organization = factory.SubFactory(OrganizationFactory)

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **fields: Any) -> User:
        organization = fields.pop("organization")
        person: User = super()._create(model_class, *args, **fields)
        MembershipFactory.create(organization=organization, user=person)
        return person


class TeamFactory(factory.django.DjangoModelFactory[Team]):
    class Meta:
        model = Team

    organization = factory.SubFactory(OrganizationFactory)
    name = factory.Sequence(lambda number: f"Time {number}")


class TeamMemberFactory(factory.django.DjangoModelFactory[TeamMember]):
    """An ACTIVE LEADER of a team, with an active membership of its organization."""

    class Meta:
        model = TeamMember

    team = factory.SubFactory(TeamFactory)
    organization = factory.SelfAttribute("team.organization")
    user = factory.SubFactory(MemberFactory, organization=factory.SelfAttribute("..organization"))
    role = TeamMember.Role.LEADER
    status = TeamMember.Status.ACTIVE


class ApiKeyFactory(factory.django.DjangoModelFactory[Any]):
    """A key of a member; the key itself is in ``.plain``, and ``bearer(key)`` are its headers."""

    class Meta:
        model = ApiKey

    organization = factory.SubFactory(OrganizationFactory)
    owner = factory.SubFactory(MemberFactory, organization=factory.SelfAttribute("..organization"))
    name = factory.Sequence(lambda number: f"chave {number}")

    @classmethod
    def _create(cls, model_class: type[ApiKey], *args: Any, **fields: Any) -> Any:
        made = keys.new()
        key: Any = super()._create(model_class, *args, public_id=made.public_id, digest=made.digest, **fields)
        key.plain = made.plain
        return key


class ContactFactory(factory.django.DjangoModelFactory[Contact]):
    class Meta:
        model = Contact

    organization = factory.SubFactory(OrganizationFactory)
    identity = factory.Sequence(lambda number: f"55119{90000000 + number}")
    name = factory.Sequence(lambda number: f"Ana {number}")


class GroupFactory(factory.django.DjangoModelFactory[Group]):
    """A group of a team; pass ``team=None, owner=…`` for one of a person."""

    class Meta:
        model = Group

    organization = factory.SubFactory(OrganizationFactory)
    external_id = factory.Sequence(lambda number: f"grp_{number}")
    name = factory.Sequence(lambda number: f"Grupo {number}")
    team = factory.SubFactory(TeamFactory, organization=factory.SelfAttribute("..organization"))


class GroupMemberFactory(factory.django.DjangoModelFactory[GroupMember]):
    class Meta:
        model = GroupMember

    group = factory.SubFactory(GroupFactory)
    organization = factory.SelfAttribute("group.organization")
    contact = factory.SubFactory(ContactFactory, organization=factory.SelfAttribute("..organization"))
    given_phone = factory.LazyAttribute(lambda member: f"+{member.contact.identity}" if member.contact else "?")
    name = factory.LazyAttribute(lambda member: member.contact.name if member.contact else "")


class ChannelFactory(Factory[Channel]):
    """A number with its lane, made by the service; it has not connected yet."""

    class Meta:
        model = Channel

    organization = factory.SubFactory(OrganizationFactory)
    kind = "waha"
    name = factory.Sequence(lambda number: f"Número {number}")
    now = NOON

    @classmethod
    def _create(cls, model_class: type[Channel], *args: Any, **fields: Any) -> Channel:
        return messaging.create_channel(**fields)


class ChannelSessionFactory(factory.django.DjangoModelFactory[ChannelSession]):
    class Meta:
        model = ChannelSession

    class Params:
        number = factory.Sequence(lambda number: number + 1)

    organization = factory.SubFactory(OrganizationFactory)
    channel = factory.SubFactory(ChannelFactory, organization=factory.SelfAttribute("..organization"))
    session_name = factory.LazyAttribute(lambda session: f"{session.organization.slug}_{session.number}")
    display_name = factory.LazyAttribute(lambda session: session.channel.name)


def bearer(key: Any) -> dict[str, str]:
    """The headers of a request with this key (a row of ApiKeyFactory)."""
    return {"Authorization": f"Bearer {key.plain}"}
