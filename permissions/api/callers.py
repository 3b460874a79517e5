"""Who calls the API: a key on behalf of its owner, or a person who is signed in to the console."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from permissions import ids
from permissions.models import ApiKey, Organization, Scope, User

# Whoever may send broadcasts reads those of his own; reading all takes the scope itself.
_IMPLIED_BY = {Scope.BROADCAST_READ: Scope.BROADCAST_SEND}


@dataclass(frozen=True, slots=True)
class Caller:
    """``key`` is None where a signed-in person calls: what he sends is written by a human, not by a machine."""

    user: User
    organization: Organization
    scopes: Collection[str]
    key: ApiKey | None = None

    def may(self, scope: str) -> bool:
        """Whether the caller has the scope, or one that implies it."""
        implied_by = _IMPLIED_BY.get(Scope(scope))
        return scope in self.scopes or (implied_by is not None and implied_by in self.scopes)

    @property
    def reads_only_own(self) -> bool:
        """Whether only his own broadcasts are shown (``broadcast:send`` without ``…:read``)."""
        return Scope.BROADCAST_READ not in self.scopes

    @property
    def counted_as(self) -> str:
        """The name under which requests are counted: each key by itself, a person over all his browsers."""
        return self.key.public_id if self.key is not None else ids.encode(ids.USER, self.user.pk)
