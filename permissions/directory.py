"""Who belongs to an organization and who leads which team: one interface, so that another may stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from permissions.models import Membership, TeamMember


@dataclass(frozen=True, slots=True)
class Standing:
    """What a person is in an organization: the role (None: not active there), and the teams he leads."""

    role: str | None = None
    leads: frozenset[UUID] = frozenset()

    @property
    def is_active(self) -> bool:
        return self.role is not None


class Directory(Protocol):
    """Named by ``settings.PEOPLE_DIRECTORY``; an external directory implements this and nothing else."""

    def standing(self, *, organization_id: UUID, user_id: UUID) -> Standing:
        """What the person is there now. Nobody in particular where either is unknown."""
        ...

    def admins(self, *, organization_id: UUID) -> frozenset[UUID]:
        """The active admins of the organization now."""
        ...


class DatabaseDirectory:
    """The directory in our own tables. Only an active user with an active membership is anybody."""

    def standing(self, *, organization_id: UUID, user_id: UUID) -> Standing:
        members = Membership.objects.of(organization_id).filter(is_active=True, user__is_active=True)
        role = members.filter(user_id=user_id).values_list("role", flat=True).first()
        if role is None:
            return Standing()
        leading = TeamMember.objects.of(organization_id).filter(
            user_id=user_id, role=TeamMember.Role.LEADER, status=TeamMember.Status.ACTIVE
        )
        return Standing(role, frozenset(leading.values_list("team_id", flat=True)))

    def admins(self, *, organization_id: UUID) -> frozenset[UUID]:
        places = Membership.objects.of(organization_id).filter(
            role=Membership.Role.ADMIN, is_active=True, user__is_active=True
        )
        return frozenset(places.values_list("user_id", flat=True))
