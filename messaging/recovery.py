"""What got stuck: messages that are "sending" without evidence, queues whose time or stream has ended."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging import adapters, db, failures, receipts
from messaging.adapters import ChannelError, Outgoing

log = logging.getLogger(__name__)

_STUCK = """
SELECT m.id, m.channel_id, c.kind, m.type, m.address, m.text, m.attempt, m.provider_id
FROM messages m JOIN channels c ON c.id = m.channel_id
WHERE m.status = 'sending' AND m.sending_at < clock_timestamp() - make_interval(secs => %s)
ORDER BY m.sending_at LIMIT %s
"""
# Conditional on the very attempt: evidence that came meanwhile has the say.
_TO_DOUBT = """
UPDATE messages SET status = 'in_doubt', error_sent = 'maybe', updated_at = clock_timestamp(),
    error_code = CASE WHEN error_code = '' THEN 'no_evidence' ELSE error_code END
WHERE id = %s AND status = 'sending' AND attempt = %s
RETURNING error_code
"""
_END_QUEUED = """
UPDATE messages m SET status = ended.status, lease = NULL, error_code = ended.code, waiting_code = '',
    waiting_until = NULL, updated_at = clock_timestamp()
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


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A message that left its gate and was not heard of since."""

    id: UUID
    channel_id: UUID
    kind: str
    type: str
    address: str
    text: str
    attempt: int
    provider_id: str | None


def resolve_stuck(*, limit: int = 200) -> int:
    """Look up what is "sending" for too long: found → sent, else in doubt. How many were dealt with.

    Never sent again by the machine. A look-up that finds nothing proves nothing.
    """
    stuck = [_Stuck(*row) for row in db.rows(_STUCK, [settings.EVIDENCE_SECONDS, limit])]
    for message in stuck:
        if not _look_up(message):
            _doubt(message)
    return len(stuck)


def _look_up(message: _Stuck) -> bool:
    if message.provider_id is None:
        return False
    outgoing = Outgoing(
        message_id=message.id,
        channel_id=message.channel_id,
        type=message.type,
        address=message.address,
        text=message.text,
        attempt=message.attempt,
        provider_id=message.provider_id,
    )
    try:
        found = adapters.for_kind(message.kind).find(outgoing)
    except ChannelError as error:
        log.info("message %s could not be looked up: %s", message.id, error.code)
        return False
    if found is None:
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


def _doubt(message: _Stuck) -> None:
    with transaction.atomic():
        for (cause,) in db.rows(_TO_DOUBT, [message.id, message.attempt]):
            failures.record(message.id, code="outcome_unknown", cause=cause)


def end_queued(*, limit: int = 5000) -> int:
    """End what is queued of canceled and expired streams, and single messages past their validity."""
    return len(db.rows(_END_QUEUED, [limit]))
