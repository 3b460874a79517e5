"""What got stuck: messages that are "sending" without evidence, queues whose time or stream has ended."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging import adapters, db, failures, receipts
from messaging.adapters import ChannelError, Outgoing

log = logging.getLogger(__name__)

# The spans are counted from the attempt's beginning. Whatever was due when it was looked up counts as done.
_TO_LOOK_UP = """
SELECT m.id, m.channel_id, c.kind, m.type, m.address, m.text, m.attempt, m.provider_id, due.number
FROM messages m JOIN channels c ON c.id = m.channel_id CROSS JOIN LATERAL (
  SELECT count(*) AS number FROM unnest(%s::double precision[]) AS seconds
  WHERE m.sending_at <= clock_timestamp() - make_interval(secs => seconds)
) AS due
WHERE m.status IN ('sending', 'in_doubt') AND m.provider_id IS NOT NULL AND m.look_ups < due.number
ORDER BY m.look_ups, m.sending_at LIMIT %s
"""
_LOOKED_UP = "UPDATE messages SET look_ups = %s WHERE id = %s AND attempt = %s AND status IN ('sending', 'in_doubt')"
# Evidence that came meanwhile has the say: a row that changed is judged as it is now.
_TO_DOUBT = """
UPDATE messages SET status = 'in_doubt', error_sent = 'maybe', lease = NULL, updated_at = clock_timestamp(),
    error_code = CASE WHEN error_code = '' THEN 'no_evidence' ELSE error_code END
WHERE id IN (
  SELECT id FROM messages
  WHERE status = 'sending' AND sending_at < clock_timestamp() - make_interval(secs => %s)
  ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING id, error_code
"""
_END_QUEUED = """
UPDATE messages m SET lease = NULL, waiting_code = '', waiting_until = NULL, updated_at = clock_timestamp(),
    status = CASE WHEN m.doubted THEN 'in_doubt' ELSE ended.status END,
    error_code = CASE WHEN m.doubted THEN 'outcome_unknown' ELSE ended.code END,
    error_sent = CASE WHEN m.doubted THEN 'maybe' ELSE m.error_sent END
FROM (
  SELECT m.id, CASE WHEN s.state IN ('canceled', 'ended') THEN 'canceled' ELSE 'expired' END AS status,
         CASE WHEN s.state IN ('canceled', 'ended') THEN 'broadcast_canceled' ELSE 'expired' END AS code
  FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
  WHERE m.status = 'queued' AND (s.state IN ('canceled', 'ended') OR s.expires_at <= clock_timestamp()
                                 OR m.expires_at <= clock_timestamp())
  ORDER BY m.id LIMIT %s FOR UPDATE OF m SKIP LOCKED
) AS ended
WHERE m.id = ended.id
RETURNING 1
"""


# Of the time without evidence after which a message is in doubt: look-ups are made after 1, 5 and 15 minutes.
_LOOK_UPS_AT = (1 / 5, 1.0, 3.0)
# One run of look-ups is over by then: a gateway that answers slowly holds up nothing else for long.
_RUN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Unheard:
    """A message that left its gate and was not heard of since. ``due``: so many look-ups were due by now."""

    id: UUID
    channel_id: UUID
    kind: str
    type: str
    address: str
    text: str
    attempt: int
    provider_id: str
    due: int


def look_up(*, limit: int = 200) -> int:
    """Ask the providers for what was not heard of; how many were found. Finding nothing proves nothing.

    A number whose provider can't be asked is left out until the next run, and its look-ups stay due.
    """
    unheard = [_Unheard(*row) for row in db.rows(_TO_LOOK_UP, [_look_ups_at(), limit])]
    give_up = time.monotonic() + _RUN_SECONDS
    silent: set[UUID] = set()
    found = 0
    for message in unheard:
        if message.channel_id in silent or time.monotonic() > give_up:
            continue
        try:
            found += _look_up(message)
        except ChannelError as error:
            log.info("message %s could not be looked up: %s", message.id, error.code)
            silent.add(message.channel_id)
    return found


def doubt_unheard(*, limit: int = 1000) -> int:
    """What has no evidence for too long is in doubt, and never sent again by the machine; how many."""
    with transaction.atomic():
        doubted = db.rows(_TO_DOUBT, [settings.EVIDENCE_SECONDS, limit])
        for message_id, cause in doubted:
            failures.record(message_id, code="outcome_unknown", cause=cause)
    return len(doubted)


def _look_ups_at() -> list[float]:
    return [share * settings.EVIDENCE_SECONDS for share in _LOOK_UPS_AT]


def _look_up(message: _Unheard) -> bool:
    outgoing = Outgoing(
        message_id=message.id,
        channel_id=message.channel_id,
        type=message.type,
        address=message.address,
        text=message.text,
        attempt=message.attempt,
        provider_id=message.provider_id,
    )
    found = adapters.for_kind(message.kind).find(outgoing)
    if found is None:
        db.rows(_LOOKED_UP, [message.due, message.id, message.attempt])
        return False
    receipts.add_evidence(
        message_id=message.id,
        channel_id=message.channel_id,
        provider_id=found.provider_id,
        attempt=message.attempt,
        rank=found.rank,
        at=db.database_now(),
    )
    return True


def end_queued(*, limit: int = 5000) -> int:
    """End what is queued of canceled and expired streams, and single messages past their validity."""
    return len(db.rows(_END_QUEUED, [limit]))
