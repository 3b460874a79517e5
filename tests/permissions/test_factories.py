"""The factories make rows that belong together."""

from __future__ import annotations

import pytest

from permissions import keys
from permissions.models import Membership, TeamMember
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_key_belongs_to_a_member_of_its_organization() -> None:
    key = factories.ApiKeyFactory.create()

    assert key.digest == keys.digest(key.plain)
    assert keys.public_id_of(key.plain) == key.public_id
    assert Membership.objects.of(key.organization).filter(user=key.owner, is_active=True).exists()


def test_a_key_can_be_given_to_a_leader() -> None:
    leader = factories.TeamMemberFactory.create()
    key = factories.ApiKeyFactory.create(organization=leader.organization, owner=leader.user)

    assert key.owner == leader.user
    assert (leader.role, leader.status) == (TeamMember.Role.LEADER, TeamMember.Status.ACTIVE)
    assert Membership.unscoped.count() == 1


def test_a_group_member_is_of_one_organization() -> None:
    member = factories.GroupMemberFactory.create()

    assert member.contact is not None
    assert member.group.team is not None
    for row in (member.group, member.contact, member.group.team):
        assert row.organization == member.organization
    assert factories.GroupMemberFactory.create(group=member.group, contact=None).given_phone == "?"


def test_a_session_has_a_channel_with_a_lane() -> None:
    session = factories.ChannelSessionFactory.create()

    assert session.channel.organization == session.organization
    assert session.channel.lane.connected is False
    assert session.session_name.split("_")[0] == session.organization.slug
