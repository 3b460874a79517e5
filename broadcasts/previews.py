"""What a broadcast would be: the very freeze, looked at and undone, so that it can't say anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from audience.selectors import Audience, groups
from broadcasts import content as contents
from broadcasts import findings, freezing, outlook, selectors, services, variations
from broadcasts.drafts import Draft
from broadcasts.findings import Finding
from broadcasts.models import Broadcast
from broadcasts.outlook import Outlook
from broadcasts.selectors import Tally
from messaging.models import Channel
from permissions.models import Organization, User

SAMPLES = 5

_SAMPLES = """
SELECT r.id, r.contact_id, r.name, r.phone, {person}
FROM broadcast_recipients r JOIN contacts c ON c.id = r.contact_id
WHERE r.broadcast_id = %s AND r.state = 'pending' ORDER BY r.position LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one person would read."""

    contact_id: UUID
    name: str
    phone: str
    text: str


@dataclass(frozen=True, slots=True)
class Preview:
    """A broadcast that does not exist, and all that is known of it. ``exclusions``: people by reason."""

    broadcast: Broadcast
    channels: Sequence[Channel]
    tally: Tally
    outlook: Outlook
    exclusions: Mapping[str, int]
    samples: Sequence[Sample]
    warnings: Sequence[Finding]
    risks: Sequence[Finding]


def preview(
    *, organization: Organization, owner: User, draft: Draft, now: datetime, audience: Audience = groups
) -> Preview:
    """What ``services.compose`` would make of the draft; nothing of it is stored. Nobody to reach is no error here.

    Raises Refused and its kinds NotFound and Forbidden, as ``compose``.
    """
    with transaction.atomic():
        broadcast, channels = services.freeze(
            organization=organization, owner=owner, draft=draft, now=now, audience=audience
        )
        seen = _look(broadcast, channels, now)
        transaction.set_rollback(True)
    return seen


def _look(broadcast: Broadcast, channels: Sequence[Channel], now: datetime) -> Preview:
    tally = selectors.tally(broadcast)
    ahead = outlook.outlooks([broadcast], {broadcast.pk: tally}, now)[broadcast.pk]
    return Preview(
        broadcast=broadcast,
        channels=channels,
        tally=tally,
        outlook=ahead,
        exclusions=selectors.exclusions(broadcast),
        samples=_samples(broadcast),
        warnings=findings.warnings(tally, ahead),
        risks=findings.risks(broadcast, channels, tally),
    )


def _samples(broadcast: Broadcast) -> list[Sample]:
    """The first people's texts. Which variation each of them gets is drawn anew when it is made."""
    said = contents.stored(broadcast.variations, broadcast.variables)
    statement = _SAMPLES.replace("{person}", freezing.person("r.name", "c.attributes"))
    with connection.cursor() as cursor:
        cursor.execute(statement, [said.personal, broadcast.pk, SAMPLES])
        rows = cursor.fetchall()
    found: list[Sample] = []
    for recipient_id, contact_id, name, phone, values in rows:
        try:
            text = said.text_for(broadcast_id=broadcast.pk, recipient_id=recipient_id, person=values)
        except variations.MissingVariable:
            # Blank to the eye though not to SQL: the feed leaves such a person out.
            continue
        found.append(Sample(contact_id, name, phone, text))
    return found
