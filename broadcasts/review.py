"""Who looks at a large broadcast before it leaves (contract: Broadcasts, ``pending_review``)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.utils.translation import gettext as _

from broadcasts.models import Broadcast
from broadcasts.refusals import Forbidden, Refused
from messaging import adapters
from messaging.models import Channel
from permissions import selectors as permissions
from permissions.models import User


def is_needed(broadcast: Broadcast, channels: Iterable[Channel], number: int) -> bool:
    """Whether so many people on these numbers are more than the organization lets pass by itself."""
    risky = any(adapters.for_kind(channel.kind).carries_ban_risk for channel in channels)
    return risky and number > broadcast.organization.review_threshold


def is_lone_admin(organization_id: UUID, person: User) -> bool:
    """Whether the person is the only admin, who approves by typing how many people it is."""
    return permissions.admins(organization_id=organization_id) == {person.pk}


def require_reviewer(broadcast: Broadcast, person: User) -> None:
    """Another admin than the owner, or the only one there is; a super-admin stands beside all of them.

    Raises Forbidden.
    """
    admins = permissions.admins(organization_id=broadcast.organization_id)
    if person.pk not in admins and not (person.is_superuser and person.is_active):
        raise Forbidden("permission_denied", _("Only an admin of the organization may approve a broadcast."))
    if person.pk == broadcast.owner_id and admins != {person.pk}:
        detail = _("Another admin than its owner has to approve this broadcast.")
        raise Forbidden("another_admin_required", detail)


def require_confirmed(broadcast: Broadcast, person: User, *, number: int, confirmed: int | None) -> None:
    """A count that is given must be exact, and a lone admin gives one. Raises Refused."""
    if confirmed == number:
        return
    if confirmed is not None or is_lone_admin(broadcast.organization_id, person):
        detail = _("Confirm by giving the exact number of recipients.")
        raise Refused("confirmation_required", detail, "confirm_recipients")
