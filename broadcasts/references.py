"""What this room does when two contacts become one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from broadcasts.models import Recipient
from messaging import streams


class FrozenPeople:
    """Recipients refer to contacts (audience.merging.References); their person keys stay as they were frozen."""

    def lock(self, *, organization_id: UUID, contact_ids: Sequence[UUID]) -> None:
        """Streams come before contacts: a feed that has read one of the two writes his message first."""
        waiting = Recipient.objects.of(organization_id).filter(contact__in=contact_ids, state=Recipient.State.PENDING)
        for stream_id in sorted(set(waiting.values_list("broadcast__stream", flat=True))):
            streams.lock(stream_id)

    def join(self, *, organization_id: UUID, kept: UUID, gone: UUID) -> None:
        """Nothing clashes: of two frozen lines of one person, the gate lets one leave."""
