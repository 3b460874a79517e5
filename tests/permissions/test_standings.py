"""Who may broadcast to a group: read fresh or kept for a minute, dropped on change, cache or no cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.db import transaction

from permissions import selectors, standings
from permissions.directory import Standing
from permissions.ids import new_id
from permissions.models import Membership, TeamMember, User
from tests import factories


def allowed(leader: TeamMember, *, owner_id: UUID | None = None, team_id: UUID | None = None) -> bool:
    return selectors.may_broadcast(
        organization_id=leader.organization_id,
        user_id=leader.user_id,
        team_id=team_id or leader.team_id,
        group_owner_id=owner_id,
    )


@pytest.mark.django_db
class TestTheRule:
    def test_an_active_leader_may(self) -> None:
        assert allowed(factories.TeamMemberFactory.create())

    @pytest.mark.parametrize("change", [{"role": "MEMBER"}, {"status": "INACTIVE"}])
    def test_a_member_or_a_former_leader_may_not(self, change: dict[str, str]) -> None:
        assert not allowed(factories.TeamMemberFactory.create(**change))

    def test_a_leader_of_another_team_may_not(self) -> None:
        leader = factories.TeamMemberFactory.create()
        other = factories.TeamFactory.create(organization=leader.organization)

        assert not allowed(leader, team_id=other.pk)

    def test_the_owner_of_the_group_may(self) -> None:
        place = factories.MembershipFactory.create(role="viewer")
        who = {"organization_id": place.organization_id, "user_id": place.user_id}

        assert selectors.may_broadcast(**who, team_id=None, group_owner_id=place.user_id)
        assert not selectors.may_broadcast(**who, team_id=None, group_owner_id=None)
        assert not selectors.may_broadcast(**who, team_id=None, group_owner_id=new_id())

    def test_an_admin_as_such_may_not(self) -> None:
        leader = factories.TeamMemberFactory.create(role="MEMBER")
        Membership.unscoped.update(role="admin")

        assert not allowed(leader)
        assert selectors.is_admin(organization_id=leader.organization_id, user_id=leader.user_id)

    @pytest.mark.parametrize("model", [User, Membership])
    def test_who_is_disabled_or_has_left_may_not(self, model: type[Any]) -> None:
        leader = factories.TeamMemberFactory.create()
        model._default_manager.update(is_active=False)

        assert not allowed(leader)
        assert not allowed(leader, owner_id=leader.user_id)
        assert not selectors.is_active_member(organization_id=leader.organization_id, user_id=leader.user_id)

    def test_what_one_is_elsewhere_does_not_count(self) -> None:
        leader = factories.TeamMemberFactory.create()
        elsewhere = factories.MembershipFactory.create(user=leader.user, role="admin")

        where = {"organization_id": elsewhere.organization_id, "user_id": leader.user_id}
        assert not selectors.leads_team(**where, team_id=leader.team_id)
        assert not selectors.is_admin(organization_id=leader.organization_id, user_id=leader.user_id)
        assert selectors.is_admin(**where)


Change = Callable[[TeamMember], object]


def save(row: Any, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(row, name, value)
    row.save(update_fields=list(fields))


def place_of(leader: TeamMember) -> Membership:
    return Membership.objects.of(leader.organization_id).get(user_id=leader.user_id)


LOSSES: dict[str, Change] = {
    "demoted": lambda leader: save(leader, role=TeamMember.Role.MEMBER),
    "inactive": lambda leader: save(leader, status=TeamMember.Status.INACTIVE),
    "off the team": lambda leader: leader.delete(),
    "the team is gone": lambda leader: leader.team.delete(),
    "disabled": lambda leader: save(leader.user, is_active=False),
    "has left": lambda leader: save(place_of(leader), is_active=False),
    "is out": lambda leader: place_of(leader).delete(),
}


@pytest.mark.django_db(transaction=True)
class TestWhatIsKept:
    def test_a_second_look_asks_the_database_nothing(self, django_assert_num_queries: Any) -> None:
        leader = factories.TeamMemberFactory.create()
        assert allowed(leader)

        with django_assert_num_queries(0):
            assert allowed(leader)

    def test_what_is_kept_is_kept_for_a_minute_at_most(self) -> None:
        leader = factories.TeamMemberFactory.create()
        allowed(leader)

        edition = cache.get(f"standing-edition:{leader.user_id}")
        name = cache.make_key(f"standing:{edition}:{leader.organization_id}")
        left = cache._cache.get_client(name).ttl(name)  # type: ignore[attr-defined]
        assert 0 < left <= 60

    @pytest.mark.parametrize("loss", LOSSES)
    def test_a_loss_counts_at_once(self, loss: str) -> None:
        leader = factories.TeamMemberFactory.create()
        assert allowed(leader)

        LOSSES[loss](TeamMember.unscoped.select_related("team", "user").get(pk=leader.pk))

        assert not allowed(leader)

    def test_a_gain_counts_at_once(self) -> None:
        leader = factories.TeamMemberFactory.create(role="MEMBER")
        assert not allowed(leader)

        save(leader, role=TeamMember.Role.LEADER)

        assert allowed(leader)

    def test_what_is_rolled_back_was_never_kept(self) -> None:
        leader = factories.TeamMemberFactory.create(role="MEMBER")

        with transaction.atomic():
            save(leader, role=TeamMember.Role.LEADER)
            assert allowed(leader)
            transaction.set_rollback(True)

        assert not allowed(leader)

    def test_an_answer_read_before_a_change_is_not_found_after_it(self, settings: LazySettings) -> None:
        leader = factories.TeamMemberFactory.create()
        settings.PEOPLE_DIRECTORY = "tests.permissions.test_standings.SlowDirectory"
        SlowDirectory.meanwhile = lambda: save(leader, status=TeamMember.Status.INACTIVE)
        assert allowed(leader), "it was so when it was read"

        settings.PEOPLE_DIRECTORY = "permissions.directory.DatabaseDirectory"
        assert not allowed(leader)

    def test_a_flushed_cache_forgets_safely(self) -> None:
        leader = factories.TeamMemberFactory.create()
        assert allowed(leader)
        TeamMember.unscoped.update(status="INACTIVE")

        cache.clear()

        assert not allowed(leader)


class SlowDirectory:
    """Something changes between its reading and its answer."""

    meanwhile: Callable[[], None]

    def standing(self, *, organization_id: UUID, user_id: UUID) -> Standing:
        from permissions.directory import DatabaseDirectory

        read = DatabaseDirectory().standing(organization_id=organization_id, user_id=user_id)
        type(self).meanwhile()
        return read


class EverybodysDirectory:
    """Another system's: everybody leads what it says."""

    teams: frozenset[UUID] = frozenset()

    def standing(self, *, organization_id: UUID, user_id: UUID) -> Standing:
        return Standing("attendant", self.teams)


@pytest.mark.django_db
def test_another_directory_may_stand_in(settings: LazySettings) -> None:
    team = factories.TeamFactory.create()
    EverybodysDirectory.teams = frozenset({team.pk})
    settings.PEOPLE_DIRECTORY = "tests.permissions.test_standings.EverybodysDirectory"

    who = {"organization_id": team.organization_id, "user_id": new_id()}
    assert selectors.may_broadcast(**who, team_id=team.pk, group_owner_id=None)
    assert not selectors.may_broadcast(**who, team_id=new_id(), group_owner_id=None)


@pytest.mark.django_db(transaction=True)
def test_without_a_cache_the_rows_are_read(settings: LazySettings) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            # Nothing listens on this port of the loopback.
            "LOCATION": "redis://127.0.0.1:1/0",
        }
    }
    leader = factories.TeamMemberFactory.create()

    assert allowed(leader)
    save(leader, status=TeamMember.Status.INACTIVE)
    assert not allowed(leader)
    standings.drop(leader.user_id)
