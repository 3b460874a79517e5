"""Overrides of the rules, by organization and by number: who may write them, and what they come to.

A tenant only tightens an anti-ban rule; what lets more through takes a super-admin and a reason, and is written into
the audit trail, as every change is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from events import services as events
from messaging import calendars, history, lanes, policy, rules
from messaging.models import Channel, OrganizationRules
from messaging.models.limits import RuleOverrides
from messaging.rules import DEFAULTS, Rules
from permissions import ids
from permissions.models import User

# A field of the rows, and what messaging.rules calls it.
FIELDS = {
    "gap": "gap",
    "broadcast_gap": "broadcast_gap",
    "window_opens": "opens",
    "window_closes": "closes",
    "sundays": "sundays",
    "holidays": "holidays",
    "daily_cap": "daily_cap",
    "new_share": "new_share",
    "broadcasts_from_day": "broadcasts_from_day",
}
_FIELD_OF = {rule: field for field, rule in FIELDS.items()}
_LONGEST_GAP = 3600


class LoosensALimit(Exception):
    """Only a super-admin may loosen an anti-ban rule, and he gives a reason."""

    def __init__(self, fields: list[str] | None = None) -> None:
        super().__init__(LoosensALimit.__doc__)
        self.fields = fields or []


class InvalidLimit(Exception):
    """A value that no rule can have. ``field`` is the one that is meant; the text is for people."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field = field


@dataclass(frozen=True, slots=True)
class By:
    """Who changes a limit, why, and when."""

    person: User
    reason: str
    now: datetime

    @property
    def may_loosen(self) -> bool:
        return self.person.is_superuser and bool(self.reason.strip())


def set_for_organization(organization_id: UUID, changes: Mapping[str, Any], by: By) -> OrganizationRules:
    """Change overrides of an organization (None: the default again); the figures of its lanes follow.

    ``changes``: by names of FIELDS. Raises LoosensALimit and InvalidLimit, each with the field.
    """
    with transaction.atomic():
        row, _made = OrganizationRules.unscoped.select_for_update().get_or_create(organization_id=organization_id)
        _write(row, changes, DEFAULTS, DEFAULTS.growth.cap_soft, by, ids.encode(ids.ORGANIZATION, organization_id))
        numbers = Channel.unscoped.filter(organization=organization_id).exclude(state=Channel.State.ARCHIVED)
        channel_ids = list(numbers.order_by("pk").values_list("pk", flat=True))
        for channel_id in channel_ids:
            lanes.refresh_figures(channel_id)
        lanes.wake(channel_ids)
    return row


def set_for_channel(channel_id: UUID, changes: Mapping[str, Any], by: By) -> Channel:
    """The same of one number, on top of its organization's."""
    with transaction.atomic():
        channel = Channel.unscoped.select_for_update(of=("self",)).select_related("organization").get(pk=channel_id)
        base = history.rules_of([channel.organization_id])[channel.organization_id]
        cap, _hard = policy.caps(replace(history.facts_of(channel), rules=base), by.now)
        _write(channel, changes, base, cap, by, ids.encode(ids.CHANNEL, channel_id))
        lanes.refresh_figures(channel_id)
        lanes.wake([channel_id])
    return channel


def set_reserve(channel_id: UUID, *, is_reserve: bool, by: By) -> None:
    """Mark a number as a reserve (no broadcasts until it takes over), or let it take over. Audited."""
    with transaction.atomic():
        channel = Channel.unscoped.select_for_update(of=("self",)).get(pk=channel_id)
        if channel.is_reserve == is_reserve:
            return
        channel.is_reserve = is_reserve
        channel.save(update_fields=["is_reserve"])
        lanes.refresh_figures(channel_id)
        lanes.wake([channel_id])
        data = {"from": "in use" if is_reserve else "reserve", "to": "reserve" if is_reserve else "in use"}
        _record(channel, "channel.reserve", by, ids.encode(ids.CHANNEL, channel_id), data)


def _write(
    row: OrganizationRules | Channel, changes: Mapping[str, Any], base: Rules, cap: int, by: By, subject: str
) -> None:
    """Apply, judge and record; ``cap``: messages a day without a cap of its own."""
    before = {field: getattr(row, field) for field in changes}
    for field, value in changes.items():
        _require_possible(field, value)
        setattr(row, field, value)
    if (row.window_opens is None) != (row.window_closes is None):
        raise InvalidLimit("window_closes", _("The hours have a beginning and an end, or neither."))
    changed = [field for field in changes if before[field] != getattr(row, field)]
    looser = _looser(row, base, cap)
    wanting = [field for field in changed if field in looser]
    if wanting and not by.may_loosen:
        raise LoosensALimit(wanting)
    kept = [field for field in row.loosened if field in looser and field not in changed]
    row.loosened = sorted({*kept, *wanting})
    row.save(update_fields=[*changes, "loosened"])
    for field in changed:
        data = {"limit": field, "from": _text(before[field]), "to": _text(getattr(row, field)), "reason": by.reason}
        _record(row, "limit.loosened" if field in wanting else "limit.tightened", by, subject, data)


def _looser(row: RuleOverrides, base: Rules, cap: int) -> set[str]:
    given = history.overrides_of(row)
    # The cap is compared with what the number may send now, which grows with its age.
    return {_FIELD_OF[name] for name in rules.loosens(replace(base, daily_cap=base.daily_cap or cap), given)}


def _require_possible(field: str, value: Any) -> None:
    if value is None:
        return
    if field in {"gap", "broadcast_gap"} and not 0 < value <= _LONGEST_GAP:
        raise InvalidLimit(field, _("A pause is more than 0 and at most %(n)d seconds.") % {"n": _LONGEST_GAP})
    if field == "new_share" and not 0 <= value <= 100:
        raise InvalidLimit(field, _("A share is between 0 and 100 %."))
    if field == "broadcasts_from_day" and not 7 <= value <= 14:
        raise InvalidLimit(field, _("Broadcasts begin between the 7th and the 14th day."))
    if field == "holidays" and value and value not in calendars.regions():
        raise InvalidLimit(field, _("The holidays of %(region)s are not known here.") % {"region": value})


def _record(row: OrganizationRules | Channel, kind: str, by: By, subject: str, data: dict[str, str]) -> None:
    events.record(
        organization_id=row.organization_id,
        type=kind,
        subject=subject,
        actor=events.user(by.person),
        now=by.now,
        data=data,
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:%H:%M}" if isinstance(value, time) else str(value)
