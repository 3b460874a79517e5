"""What a role in an organization allows: the scopes with which its people use the API from the console."""

from __future__ import annotations

from collections.abc import Mapping

from permissions.models import Membership, Scope

Role = Membership.Role

# A key has the scopes it was issued with; a signed-in person has these. An attendant's broadcasts are his own, to
# groups that he leads or owns: that rule stands beside the scope, for keys as for people.
SCOPES: Mapping[str, frozenset[str]] = {
    Role.ADMIN: frozenset(Scope),
    Role.ATTENDANT: frozenset(
        {
            Scope.BROADCAST_SEND,
            Scope.MESSAGES_SEND,
            Scope.MESSAGES_READ,
            Scope.CONTACTS_WRITE,
            Scope.CONTACTS_READ,
        }
    ),
    Role.VIEWER: frozenset({Scope.BROADCAST_READ, Scope.MESSAGES_READ, Scope.CONTACTS_READ}),
}


def scopes_of(role: str) -> frozenset[str]:
    """The scopes of a role; none of one that is unknown."""
    return SCOPES.get(role, frozenset())
