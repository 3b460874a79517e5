"""What somebody asks to have sent, and what it means in his organization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile

from django.utils.translation import gettext as _

from audience.models import Group
from audience.selectors import Audience
from broadcasts import content
from broadcasts.content import Content
from broadcasts.refusals import Forbidden, NotFound, Refused
from messaging import lanes, policy
from messaging.models import Channel
from permissions import ids
from permissions import selectors as permissions
from permissions.models import Organization, User

# The kind of number that variations are for: one that carries ban risk.
VARIATIONS_KIND = "waha"


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


@dataclass(frozen=True, slots=True)
class Meaning:
    """A draft's group, numbers and content, each found and allowed."""

    group: Group
    channels: Sequence[Channel]
    content: Content


def read(draft: Draft, *, organization: Organization, owner: User, audience: Audience, now: datetime) -> Meaning:
    """What the draft means. Raises NotFound, Forbidden and Refused, each with the contract's code."""
    group = _group(draft, organization, owner, audience)
    if draft.variations is None and draft.template_name is None:
        raise Refused("content_required", _("Either variations or a template is needed."))
    if draft.variations is not None and draft.template_name is not None:
        raise Refused("content_ambiguous", _("Variations and a template exclude each other."))
    if draft.variations is None:
        detail = _("No template of this name is approved.")
        raise Refused("template_not_approved", detail, "template_name")
    understood = _content(draft.variations, draft.variables, organization, audience)
    return Meaning(group, _channels(draft, organization, now), understood)


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


def _channels(draft: Draft, organization: Organization, now: datetime) -> list[Channel]:
    """The numbers in the order given, or the default one."""
    usable = (
        Channel.objects.of(organization)
        .filter(kind=VARIATIONS_KIND)
        .exclude(state=Channel.State.ARCHIVED)
        .select_related("organization")
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
        _require_warm(channel, now)
    return chosen


def _require_warm(channel: Channel, now: datetime) -> None:
    ready_on = policy.broadcasts_from(lanes.facts_of(channel), now)
    if ready_on is not None:
        detail = _("The number is too new: it takes broadcasts from %(day)s on.") % {"day": ready_on.isoformat()}
        raise Refused("channel_in_warmup", detail, "channel_ids")
