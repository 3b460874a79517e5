"""Organizations, people, teams, keys."""

from permissions.models.base import Identified, TenantModel
from permissions.models.idempotency import IdempotencyRecord
from permissions.models.keys import ApiKey, Scope
from permissions.models.tenancy import Membership, Organization, Team, TeamMember, User

__all__ = [
    "ApiKey",
    "IdempotencyRecord",
    "Identified",
    "Membership",
    "Organization",
    "Scope",
    "Team",
    "TeamMember",
    "TenantModel",
    "User",
]
