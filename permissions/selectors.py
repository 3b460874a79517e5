"""Reads: whose key this is, and who may do what."""

from __future__ import annotations

import hmac
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef

from permissions import isolation, keys, standings
from permissions.isolation import Sweep
from permissions.models import ApiKey, Membership, Organization, User

# Compared where no key was found, so that an unknown id costs what a wrong secret costs.
_NO_DIGEST = "0" * 64


def usable_key(plain: str, *, now: datetime) -> ApiKey | None:
    """The key with its owner and organization; None unless it is known, unexpired, unrevoked and its owner
    is active in the organization."""
    public_id = keys.public_id_of(plain)
    if public_id is None:
        return None
    key = _by_public_id(public_id)
    if not _fits(keys.digest(plain), key, now) or key is None or key.state_at(now) != ApiKey.State.ACTIVE:
        return None
    return key


def _fits(given: str, key: ApiKey | None, now: datetime) -> bool:
    """Whether the digest is that of the secret, or of the one before while that lives.

    Both are compared, whichever fits and even where there is no key: one cost for all.
    """
    current, previous = (key.digest, key.previous_digest) if key else ("", "")
    is_current = hmac.compare_digest(given, current or _NO_DIGEST)
    is_previous = hmac.compare_digest(given, previous or _NO_DIGEST)
    lives_on = key is not None and key.previous_expires_at is not None and key.previous_expires_at > now
    return is_current or (is_previous and lives_on)


def leads_team(*, organization_id: UUID, user_id: UUID, team_id: UUID) -> bool:
    """Whether the person is an ACTIVE LEADER of the team, at most a minute ago."""
    return team_id in standings.read(organization_id=organization_id, user_id=user_id).leads


def is_active_member(*, organization_id: UUID, user_id: UUID) -> bool:
    """Whether the person is active, and in the organization, at most a minute ago."""
    return standings.read(organization_id=organization_id, user_id=user_id).is_active


def is_admin(*, organization_id: UUID, user_id: UUID) -> bool:
    """Whether the person is an active admin of the organization, at most a minute ago."""
    role = standings.read(organization_id=organization_id, user_id=user_id).role
    return role == Membership.Role.ADMIN


def admins(*, organization_id: UUID) -> frozenset[UUID]:
    """Who is an active admin of the organization now."""
    return standings.admins(organization_id=organization_id)


def may_broadcast(*, organization_id: UUID, user_id: UUID, team_id: UUID | None, group_owner_id: UUID | None) -> bool:
    """The rule "may broadcast to this group" (contract: Broadcasts).

    An active member who is an ACTIVE LEADER of the team that owns the group, or the group's own owner.
    The answer is at most a minute old; inside a transaction it is of now.
    """
    standing = standings.read(organization_id=organization_id, user_id=user_id)
    if not standing.is_active:
        return False
    return group_owner_id == user_id or (team_id is not None and team_id in standing.leads)


def places_of(user: User) -> list[Membership]:
    """The person's active memberships, with their organizations, by name."""
    places = Membership.unscoped.filter(user=user, is_active=True).select_related("organization")
    with isolation.across_tenants(Sweep.SIGN_IN, user.pk):
        return list(places.order_by("organization__name"))


def organization_by_slug(slug: str) -> Organization | None:
    """The tenant of that slug."""
    return Organization.objects.filter(slug=slug).first()


def keys_of(organization: Organization | None) -> list[ApiKey]:
    """The keys of a tenant, or of all, newest first; with owners and organizations. For operators."""
    rows = ApiKey.unscoped.select_related("owner", "organization").order_by("-created_at", "pk")
    return list(rows if organization is None else rows.filter(organization=organization))


def user_by_name(username: str) -> User | None:
    """The person of that user name."""
    return User.objects.filter(username=username).first()


def key_by_public_id(text: str) -> ApiKey | None:
    """A key of any tenant by its public id, or by the key itself; for operators, not for requests."""
    public_id = keys.public_id_of(text) or text
    return ApiKey.unscoped.filter(public_id=public_id).first()


def _by_public_id(public_id: str) -> ApiKey | None:
    """The key whose owner is active in its organization. Across tenants, since it is what names the tenant."""
    place = Membership.unscoped.filter(
        organization_id=OuterRef("organization_id"), user_id=OuterRef("owner_id"), is_active=True
    )
    known = ApiKey.unscoped.filter(Exists(place), public_id=public_id, owner__is_active=True)
    with isolation.across_tenants(Sweep.API_KEY):
        return known.select_related("owner", "organization").first()
