"""What somebody asks to have sent, and what it means in his organization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from typing import NoReturn

from django.conf import settings
from django.utils.translation import gettext as _

from audience.models import Group
from audience.selectors import Audience
from broadcasts import content, plan
from broadcasts.content import Content
from broadcasts.models.broadcast import VALID_FOR
from broadcasts.plan import Work
from broadcasts.refusals import Forbidden, NotFound, Refused
from messaging import history, policy
from messaging.models import Channel
from messaging.policy import Barred
from permissions import ids
from permissions import selectors as permissions
from permissions.models import Organization, User

# The kind of number that variations are for: one that carries ban risk.
VARIATIONS_KIND = "waha"
VALID_AT_MOST = timedelta(days=30)
SCHEDULED_AT_MOST = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A broadcast as it was asked for (contract: Broadcasts). Group and channels by their outside ids."""

    group: str
    template_name: str | None = None
    variations: Sequence[str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    channels: Sequence[str] = ()
    language: str = "pt_BR"
    name: str = ""
    media: str | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None

    def starts_at(self, now: datetime) -> datetime:
        """The earliest start, reviews and pauses aside."""
        return self.scheduled_at or now


@dataclass(frozen=True, slots=True)
class Meaning:
    """A draft's group, numbers and content, each found and allowed."""

    group: Group
    channels: Sequence[Channel]
    content: Content


def read(draft: Draft, *, organization: Organization, owner: User, audience: Audience, now: datetime) -> Meaning:
    """What the draft means. Raises NotFound, Forbidden and Refused, each with the contract's code."""
    group = _group(draft, organization, owner, audience)
    _require_possible_times(draft, now)
    if draft.media is not None:
        raise Refused("media_not_supported", _("Broadcasts can't carry media yet."), "media_id")
    if draft.variations is None and draft.template_name is None:
        raise Refused("content_required", _("Either variations or a template is needed."))
    if draft.variations is not None and draft.template_name is not None:
        raise Refused("content_ambiguous", _("Variations and a template exclude each other."))
    if draft.variations is None:
        _require_template(draft)
    else:
        understood = _content(draft.variations, draft.variables, organization, audience)
    channels = _channels(draft, organization, draft.starts_at(now))
    _require_a_turn(draft, channels, now)
    return Meaning(group, channels, understood)


def _require_possible_times(draft: Draft, now: datetime) -> None:
    start, end = draft.starts_at(now), draft.expires_at
    if draft.scheduled_at is not None and draft.scheduled_at <= now:
        raise Refused("scheduled_in_past", _("The start is in the past."), "scheduled_at")
    if start > now + SCHEDULED_AT_MOST:
        detail = _("The start is more than %(days)d days away.") % {"days": SCHEDULED_AT_MOST.days}
        raise Refused("scheduled_too_late", detail, "scheduled_at")
    if end is None:
        return
    if end <= now:
        raise Refused("expires_in_past", _("The end is in the past."), "expires_at")
    if end <= start:
        raise Refused("expires_before_start", _("The end is not after the start."), "expires_at")
    if end > start + VALID_AT_MOST:
        detail = _("The end is more than %(days)d days after the start.") % {"days": VALID_AT_MOST.days}
        raise Refused("expires_too_late", detail, "expires_at")


def _require_template(draft: Draft) -> NoReturn:
    """Raises Refused: this installation has no official number yet, so no template is approved anywhere."""
    # Meta's templates count their variables from 1 without a gap, or name all of them.
    numbered = sorted(int(name) for name in draft.variables if name.isascii() and name.isdecimal() and len(name) < 4)
    if numbered and numbered != list(range(1, len(draft.variables) + 1)):
        detail = _("The variables of a template are numbered from 1 without a gap, or all of them have names.")
        raise Refused("template_variables_mismatch", detail, "variables")
    raise Refused("template_not_approved", _("No template of this name is approved."), "template_name")


def _group(draft: Draft, organization: Organization, owner: User, audience: Audience) -> Group:
    group = audience.find(organization_id=organization.pk, reference=draft.group)
    if group is None:
        raise NotFound("group_not_found", _("There is no such group."), "group_id")
    if not may_send(owner, group):
        detail = _("Only an active leader of the group's team, or its owner, may write to it.")
        raise Forbidden("group_forbidden", detail, "group_id")
    return group


def may_send(owner: User, group: Group) -> bool:
    """Whether the person may broadcast to the group; inside a transaction as of now."""
    return permissions.may_broadcast(
        organization_id=group.organization_id,
        user_id=owner.pk,
        team_id=group.team_id,
        group_owner_id=group.owner_id,
    )


def _content(
    texts: Sequence[str], variables: Mapping[str, str], organization: Organization, audience: Audience
) -> Content:
    content.require_bounded(texts)
    names = (name for name in content.names_in(texts) if name != content.NAME and name not in variables)
    # The first that nobody has ends the search: the text is refused for it.
    known = takewhile(lambda name: audience.has_attribute(organization_id=organization.pk, name=name), names)
    attributes = set(known)
    return content.read(texts, variables, attributes=attributes)


def _channels(draft: Draft, organization: Organization, start: datetime) -> list[Channel]:
    """The numbers in the order given, or the default one, each old enough at the start."""
    usable = (
        Channel.objects.of(organization)
        .filter(kind=VARIATIONS_KIND)
        .exclude(state=Channel.State.ARCHIVED)
        .select_related("organization", "lane")
    )
    if not draft.channels:
        chosen = list(usable.filter(is_default=True))
        if not chosen:
            raise Refused("channel_required", _("There is no default number: name one."), "channel_ids")
    else:
        wanted = dict.fromkeys(ids.decode(ids.CHANNEL, text) for text in draft.channels)
        found = usable.in_bulk([channel_id for channel_id in wanted if channel_id])
        if len(found) < len(wanted):
            raise NotFound("channel_not_found", _("There is no such number."), "channel_ids")
        chosen = [found[channel_id] for channel_id in wanted if channel_id]
    for channel in chosen:
        _require_warm(channel, start)
    return chosen


def _require_a_turn(draft: Draft, channels: Sequence[Channel], now: datetime) -> None:
    """At least one message must be able to leave before the end, by hours and daily limits as they are known."""
    start = draft.starts_at(now)
    end = draft.expires_at or start + VALID_FOR
    if any(plan.make(_one_message(channel, start), start, until=end).number for channel in channels):
        return
    attr = "channel_ids" if draft.expires_at is None else "expires_at"
    if all(_opens_at(channel, start) >= end for channel in channels):
        raise Refused("expires_before_window", _("It ends before the hours for sending begin."), attr)
    detail = _("By the daily limits nothing could be sent before it ends.")
    raise Refused("daily_limit_exceeded", detail, attr)


def _one_message(channel: Channel, start: datetime) -> Work:
    lane = channel.lane
    used = lane.used if lane.day_starts_at <= start < lane.day_ends_at else 0
    deadline = settings.SEND_DEADLINE_SECONDS
    # Whether there is a moment at all: the pace of the lane does not matter for a single message.
    return Work(facts=history.facts_of(channel), pace=0.001, number=1, used=used, keep_open=deadline)


def _opens_at(channel: Channel, start: datetime) -> datetime:
    deadline = settings.SEND_DEADLINE_SECONDS
    return policy.figures(history.facts_of(channel), start, keep_open=deadline, spread=0.0).open_from


def _require_warm(channel: Channel, start: datetime) -> None:
    facts = history.facts_of(channel)
    if facts.is_reserve:
        detail = _("The number is a reserve: it takes broadcasts once it takes over from another.")
        raise Refused(Barred.RESERVED.value, detail, "channel_ids")
    ready_on = policy.broadcasts_from(facts, start)
    if ready_on is not None:
        detail = _("The number is too new: it takes broadcasts from %(day)s on.") % {"day": ready_on.isoformat()}
        raise Refused("channel_in_warmup", detail, "channel_ids")
