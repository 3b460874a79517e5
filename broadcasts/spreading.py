"""Which of its numbers writes to whom: in turns, but nobody who talks with one of them hears from another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from broadcasts.models import Broadcast
from messaging import ranks
from messaging.models import Message

# The last message that came in, or is known to have left, says with which number a person talks.
_KEEP = """
WITH known AS (
  SELECT DISTINCT ON (r.id) r.id, m.channel_id
  FROM broadcast_recipients r JOIN messages m ON m.contact_id = r.contact_id
  WHERE r.broadcast_id = %(broadcast)s AND r.channel_id IS NOT NULL
    AND m.organization_id = %(organization)s AND m.channel_id = ANY (%(channels)s) AND m.status = ANY (%(talked)s)
  ORDER BY r.id, m.created_at DESC
)
UPDATE broadcast_recipients r SET channel_id = known.channel_id
FROM known WHERE r.id = known.id AND r.channel_id <> known.channel_id
"""


def keep_known_numbers(broadcast: Broadcast, channel_ids: Sequence[UUID]) -> None:
    """After the freeze: whoever already talks with one of several numbers keeps that one (contract: Broadcasts)."""
    if len(channel_ids) < 2:
        return
    values: dict[str, Any] = {
        "broadcast": broadcast.pk,
        "organization": broadcast.organization_id,
        "channels": list(channel_ids),
        "talked": [Message.Status.RECEIVED.value, *(status.value for status in ranks.WAS_SENT)],
    }
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, values)
