"""What the policy is told of channels: their own facts, their organization's rules, and how they fared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from messaging import db, policy
from messaging.models import Channel, OrganizationRules
from messaging.models import Restriction as RestrictionRow
from messaging.models.limits import RuleOverrides
from messaging.policy import Facts, Restriction
from messaging.rules import DEFAULTS, Overrides, Rules, under

# What failed certainly did not count as used, or may have; so the share is of both together.
_SHARES = """
SELECT l.channel_id, failed.number::float / greatest(failed.number + l.used + past.used, 1)
FROM (SELECT clock_timestamp() - make_interval(days => %s) AS began) AS since,
  lanes l,
  LATERAL (SELECT coalesce(sum(used), 0) AS used FROM lane_days d
           WHERE d.channel_id = l.channel_id AND d.began_at > since.began) AS past,
  LATERAL (SELECT count(*) AS number FROM messages m
           WHERE m.channel_id = l.channel_id AND m.status = 'failed' AND m.updated_at > since.began) AS failed
WHERE l.channel_id = ANY (%s)
"""


def facts_of(channel: Channel) -> Facts:
    """What the policy is told of a channel (its organization loaded)."""
    return facts([channel])[channel.pk]


def facts(channels: Iterable[Channel]) -> dict[UUID, Facts]:
    """The same of several, by id; as many queries for one as for all of them."""
    wanted = {channel.pk: channel for channel in channels}
    if not wanted:
        return {}
    organizations = rules_of({channel.organization_id for channel in wanted.values()})
    shares = _failed_shares(wanted)
    restrictions = _restrictions(wanted)
    found: dict[UUID, Facts] = {}
    for pk, channel in wanted.items():
        zone = channel.organization.time_zone
        found[pk] = Facts(
            time_zone=zone,
            in_use_since=policy.first_day(zone, channel.first_connected_at, channel.in_use_since),
            rules=under(organizations[channel.organization_id], overrides_of(channel)),
            is_reserve=channel.is_reserve,
            failed_share=shares.get(pk, 0.0),
            restrictions=tuple(restrictions.get(pk, ())),
        )
    return found


def rules_of(organization_ids: Collection[UUID]) -> dict[UUID, Rules]:
    """The rules of each organization: the defaults under its overrides."""
    rows = OrganizationRules.unscoped.filter(organization__in=organization_ids)
    changed = {row.organization_id: under(DEFAULTS, overrides_of(row)) for row in rows}
    return {organization_id: changed.get(organization_id, DEFAULTS) for organization_id in organization_ids}


def overrides_of(row: RuleOverrides) -> Overrides:
    """A row's overrides as the rules know them."""
    return Overrides(
        gap=row.gap,
        broadcast_gap=row.broadcast_gap,
        opens=row.window_opens,
        closes=row.window_closes,
        sundays=row.sundays,
        holidays=row.holidays,
        daily_cap=row.daily_cap,
        new_share=None if row.new_share is None else row.new_share / 100,
        broadcasts_from_day=row.broadcasts_from_day,
        loosened=frozenset(row.loosened),
    )


def _failed_shares(channel_ids: Collection[UUID]) -> Mapping[UUID, float]:
    return dict(db.rows(_SHARES, [DEFAULTS.growth.failed_days, list(channel_ids)]))


def _restrictions(channel_ids: Collection[UUID]) -> Mapping[UUID, list[Restriction]]:
    """Those that hold, and those that ended not long ago."""
    since = timezone.now() - timedelta(days=DEFAULTS.growth.unrestricted_days + 1)
    recent = Q(ended_at=None) | Q(ended_at__gt=since)
    found: dict[UUID, list[Restriction]] = {}
    for row in RestrictionRow.unscoped.filter(recent, channel__in=channel_ids).order_by("began_at"):
        found.setdefault(row.channel_id, []).append(Restriction(row.code, row.began_at, row.ended_at or row.ends_at))
    return found
