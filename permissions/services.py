"""Writes: keys, organizations, and the people in them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import phonenumbers
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from permissions import audit, ids, keys, standings
from permissions.audit import Actor
from permissions.models import ApiKey, IdempotencyRecord, Membership, Organization, Scope, User
from permissions.models.keys import default_scopes

# The longest life of a key that has one.
LONGEST_DAYS = 3660
# How long the old secret of a rotated key lives on.
OVERLAP = timedelta(hours=24)
LONGEST_OVERLAP = timedelta(days=30)
_USE_NOTED_EVERY = timedelta(minutes=1)


class NotAMember(Exception):
    """The owner of a key is an active member of its organization."""


class UnknownScope(Exception):
    """The scope is none of the contract's."""


class KeyEnded(Exception):
    """A key that is revoked or expired can't be rotated."""


class OverlapTooLong(Exception):
    """The old secret lives on for at most 30 days."""


class ExpiryInPast(Exception):
    """A key must be usable for a while."""


def issue_key(
    *,
    organization: Organization,
    owner: User,
    name: str,
    actor: Actor,
    now: datetime,
    scopes: Iterable[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key, and the text that is shown this once. Audited: ``api_key.issued``.

    ``scopes`` default to ``broadcast:send``. Raises NotAMember, UnknownScope, ExpiryInPast, and Django's
    ValidationError for a name that is empty or too long.
    """
    wanted = sorted(set(scopes)) if scopes else default_scopes()
    for scope in wanted:
        if scope not in Scope.values:
            raise UnknownScope(scope)
    if expires_at is not None and expires_at <= now:
        raise ExpiryInPast(ExpiryInPast.__doc__)
    if not standings.fresh(organization_id=organization.pk, user_id=owner.pk).is_active:
        raise NotAMember(NotAMember.__doc__)
    made = keys.new()
    key = ApiKey(
        organization=organization,
        owner=owner,
        name=name.strip(),
        public_id=made.public_id,
        digest=made.digest,
        scopes=wanted,
        expires_at=expires_at,
        created_at=now,
    )
    key.clean_fields()
    with transaction.atomic():
        key.save(force_insert=True)
        _record(key, "api_key.issued", actor, now)
    return key, made.plain


def rotate_key(*, key: ApiKey, actor: Actor, now: datetime, overlap: timedelta = OVERLAP) -> str:
    """Another secret for the key: the text that is shown this once. Audited: ``api_key.rotated``.

    The secret before works on for ``overlap``; one from a rotation before that ends now, so that two live at the
    most. Raises KeyEnded, OverlapTooLong, and NotAMember where the owner is no longer active.
    """
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise OverlapTooLong(OverlapTooLong.__doc__)
    if not standings.fresh(organization_id=key.organization_id, user_id=key.owner_id).is_active:
        raise NotAMember(NotAMember.__doc__)
    with transaction.atomic():
        # Of two rotations at once each knows the other's secret as the one before.
        row = ApiKey.objects.of(key.organization_id).select_for_update().get(pk=key.pk)
        if row.state_at(now) != ApiKey.State.ACTIVE:
            raise KeyEnded(KeyEnded.__doc__)
        made = keys.renewed(row.public_id)
        row.previous_digest, row.previous_expires_at = row.digest, now + overlap
        row.digest, row.rotated_at = made.digest, now
        row.save(update_fields=["digest", "previous_digest", "previous_expires_at", "rotated_at"])
        _record(row, "api_key.rotated", actor, now, previous_expires_at=row.previous_expires_at.isoformat())
    return made.plain


def revoke_key(*, key: ApiKey, actor: Actor, now: datetime) -> bool:
    """End a key; False where it had ended before. Audited: ``api_key.revoked``.

    What its owner started with it goes on.
    """
    with transaction.atomic():
        open_keys = ApiKey.objects.of(key.organization_id).filter(pk=key.pk, revoked_at=None)
        if not open_keys.update(revoked_at=now):
            return False
        key.revoked_at = now
        _record(key, "api_key.revoked", actor, now)
    return True


def note_use(*, key: ApiKey, now: datetime) -> bool:
    """Move ``last_used_at``, at most once a minute: all other requests of a key write nothing, and are False."""
    before = now - _USE_NOTED_EVERY
    if key.last_used_at is not None and key.last_used_at > before:
        return False
    stale = Q(last_used_at=None) | Q(last_used_at__lte=before)
    return bool(ApiKey.objects.of(key.organization_id).filter(stale, pk=key.pk).update(last_used_at=now))


class LoosensALimit(Exception):
    """A tenant may only tighten a rule; loosening takes a super-admin and a reason."""


def set_review_threshold(
    *, organization: Organization, number: int, reason: str, by: User, actor: Actor, now: datetime
) -> None:
    """How many recipients a broadcast may have without an admin's approval.

    Audited: ``limit.loosened`` or ``limit.tightened``. Raises LoosensALimit for a larger number by anybody but a
    super-admin with a reason, and Django's ValidationError for one that can't be stored.
    """
    with transaction.atomic():
        current = Organization.objects.select_for_update().get(pk=organization.pk)
        before, current.review_threshold = current.review_threshold, number
        current.clean_fields()
        loosens = number > before
        if loosens and not (by.is_superuser and reason.strip()):
            raise LoosensALimit(LoosensALimit.__doc__)
        current.save(update_fields=["review_threshold"])
        audit.record(
            organization_id=current.pk,
            type="limit.loosened" if loosens else "limit.tightened",
            subject=ids.encode(ids.ORGANIZATION, current.pk),
            actor=actor,
            now=now,
            data={"limit": "review_threshold", "from": before, "to": number, "reason": reason.strip()},
        )


def create_organization(
    *, name: str, slug: str, time_zone: str, region: str, actor: Actor, now: datetime
) -> Organization:
    """A new tenant. Raises Django's ValidationError, with the fields that are wrong."""
    organization = Organization(name=name.strip(), slug=slug, time_zone=time_zone, region=region, created_at=now)
    if region not in phonenumbers.SUPPORTED_REGIONS:
        detail = _("%(region)s is not a country in two capital letters.") % {"region": region}
        raise ValidationError({"region": detail})
    organization.full_clean()
    with transaction.atomic():
        organization.save(force_insert=True)
        audit.record(
            organization_id=organization.pk,
            type="organization.created",
            subject=ids.encode(ids.ORGANIZATION, organization.pk),
            actor=actor,
            now=now,
        )
    return organization


def set_role(
    *, organization: Organization, user: User, role: Membership.Role, actor: Actor, now: datetime
) -> Membership:
    """Make a person an active member with this role. Audited with from and to: ``membership.role_changed``."""
    with transaction.atomic():
        # Serialises the changes of one organization's people, so that "from" is true.
        Organization.objects.select_for_update().get(pk=organization.pk)
        members = Membership.objects.of(organization)
        place = members.filter(user=user).first() or Membership(
            organization=organization, user=user, created_at=now, is_active=False
        )
        before = place.role if place.is_active else None
        place.role, place.is_active = role, True
        place.save()
        _record_role(place, before, role.value, actor, now)
    return place


def end_membership(*, organization: Organization, user: User, actor: Actor, now: datetime) -> bool:
    """Take a person out of an organization; False where he was out before. Audited: ``membership.role_changed``.

    His keys are refused from now on, and his broadcasts pause.
    """
    with transaction.atomic():
        Organization.objects.select_for_update().get(pk=organization.pk)
        place = Membership.objects.of(organization).filter(user=user, is_active=True).first()
        if place is None:
            return False
        place.is_active = False
        place.save(update_fields=["is_active"])
        _record_role(place, place.role, None, actor, now)
    return True


def ensure_staff_user(*, username: str) -> User:
    """The person of that name, able to open the admin; a new one cannot sign in until a password is set.

    Raises Django's ValidationError for a name that can't be one.
    """
    person = User.objects.filter(username=username).first()
    if person is None:
        person = User(username=username)
        person.set_unusable_password()
        person.full_clean()
    person.is_staff = True
    person.save()
    return person


def sweep_idempotency_records(*, now: datetime, limit: int = 5000) -> int:
    """Forget answers that are past their time; how many, up to ``limit``."""
    old = IdempotencyRecord.unscoped.filter(expires_at__lte=now).values_list("pk", flat=True)[:limit]
    number, _models = IdempotencyRecord.unscoped.filter(pk__in=list(old)).delete()
    return number


def _record_role(place: Membership, before: str | None, after: str | None, actor: Actor, now: datetime) -> None:
    audit.record(
        organization_id=place.organization_id,
        type="membership.role_changed",
        subject=ids.encode(ids.USER, place.user_id),
        actor=actor,
        now=now,
        data={"from": before, "to": after},
    )


def _record(key: ApiKey, kind: str, actor: Actor, now: datetime, **more: str) -> None:
    audit.record(
        organization_id=key.organization_id,
        type=kind,
        subject=ids.encode(ids.API_KEY, key.pk),
        actor=actor,
        now=now,
        data={"key": key.public_id, "owner": ids.encode(ids.USER, key.owner_id), "scopes": list(key.scopes), **more},
    )
