"""Evidence of what became of our messages: acks, echoes, look-ups. Status moves forward only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from messaging import db, failures, ranks
from messaging.adapters import Ack, Echo
from messaging.models import Channel, Message
from permissions.ids import new_id

# A clock of the provider that runs ahead does not put a message after its own echo.
_CLOCK_TOLERANCE = timedelta(seconds=5)

_BY_ID = "SELECT message_id, attempt FROM receipts WHERE channel_id = %s AND provider_id = %s"
# Without an id of ours: the oldest that may be it. Content and chat must agree.
_BY_CONTENT = """
SELECT id, attempt FROM messages
WHERE channel_id = %s AND status IN ('sending', 'in_doubt') AND provider_id IS NULL
  AND address = ANY (%s) AND text = %s AND sending_at <= %s
ORDER BY sending_at LIMIT 1 FOR UPDATE
"""


def apply_acks(channel_id: UUID, acks: Sequence[Ack]) -> int:
    """Apply a batch of one channel's acks set-wise; how many messages moved. Any order, any repetition."""
    return apply_all([(channel_id, ack) for ack in acks])


def apply_all(acks: Sequence[tuple[UUID, Ack]]) -> int:
    """The same for several channels together: (channel, ack)."""
    if not acks:
        return 0
    moved = db.engine(
        "SELECT message_id, status FROM engine_acks(%s, %s, %s, %s, %s)",
        [
            [channel_id for channel_id, _ack in acks],
            [ack.provider_id for _channel_id, ack in acks],
            [ack.rank for _channel_id, ack in acks],
            [ack.happened_at for _channel_id, ack in acks],
            [ack.code or None for _channel_id, ack in acks],
        ],
    )
    for message_id, status in moved:
        if status == Message.Status.FAILED:
            failures.record(message_id, code=_code_of(message_id))
    return len(moved)


def known(wanted: Sequence[tuple[UUID, str]]) -> set[tuple[UUID, str]]:
    """Which of these (channel, provider id) belong to a message."""
    if not wanted:
        return set()
    channels, names = zip(*wanted, strict=True)
    found = db.rows(
        "SELECT rc.channel_id, rc.provider_id FROM unnest(%s::uuid[], %s::text[]) AS wanted (channel_id, provider_id)"
        " JOIN receipts rc USING (channel_id, provider_id) WHERE rc.message_id IS NOT NULL",
        [list(channels), list(names)],
    )
    return {(channel_id, name) for channel_id, name in found}


def _code_of(message_id: UUID) -> str:
    return Message.unscoped.values_list("error_code", flat=True).get(pk=message_id)


def add_evidence(*, message_id: UUID, channel_id: UUID, provider_id: str, attempt: int, rank: int, at: datetime) -> str:
    """An attempt is known to have left: lift its message; the status in which it is now."""
    ((status,),) = db.engine(
        "SELECT engine_evidence(%s, %s, %s, %s, %s, %s)",
        [message_id, channel_id, provider_id, attempt, rank, at],
    )
    return str(status)


def match_echo(channel_id: UUID, echo: Echo, spellings: Sequence[str]) -> bool:
    """Tie an own message seen at the provider to the one of ours that it is; whether there is one.

    ``spellings``: every address under which the engine may have written to the echo's chat.
    """
    found = [row for row in db.rows(_BY_ID, [channel_id, echo.provider_id]) if row[0] is not None]
    if not found:
        latest = echo.happened_at + _CLOCK_TOLERANCE
        found = db.rows(_BY_CONTENT, [channel_id, list(spellings), echo.text, latest])
    if not found:
        return False
    message_id, attempt = found[0]
    add_evidence(
        message_id=message_id,
        channel_id=channel_id,
        provider_id=echo.provider_id,
        attempt=attempt,
        rank=ranks.SENT,
        at=echo.happened_at,
    )
    return True


def is_lane_busy(channel_id: UUID) -> bool:
    """Whether a message of the lane is in flight, so that an unknown echo may still be its."""
    return bool(
        db.rows(
            "SELECT 1 FROM lanes WHERE channel_id = %s AND busy_message IS NOT NULL"
            " UNION ALL SELECT 1 FROM messages WHERE channel_id = %s AND status = 'sending' LIMIT 1",
            [channel_id, channel_id],
        )
    )


def record_external(channel: Channel, echo: Echo) -> None:
    """Store a message that was written on the phone. Repeatable; a settle that proves it ours absorbs it."""
    with transaction.atomic():
        message = Message(
            id=new_id(),
            organization_id=channel.organization_id,
            channel=channel,
            direction=Message.Direction.OUT,
            origin=Message.Origin.EXTERNAL_DEVICE,
            priority=Message.Priority.HUMAN,
            address=echo.address,
            text=echo.text.replace("\0", "\ufffd"),
            status=Message.Status.SENT,
            provider_id=echo.provider_id,
            sent_at=echo.happened_at,
        )
        message.save(force_insert=True)
        db.rows(
            """
            INSERT INTO receipts AS rc
              (channel_id, provider_id, message_id, attempt, rank, sent_at, error_code, created_at)
            VALUES (%s, %s, %s, 0, %s, %s, '', clock_timestamp())
            ON CONFLICT (channel_id, provider_id) DO UPDATE
              SET message_id = coalesce(rc.message_id, excluded.message_id),
                  rank = greatest(rc.rank, excluded.rank)
            """,
            [channel.pk, echo.provider_id, message.pk, ranks.SENT, echo.happened_at],
        )
        # Two deliveries of one echo: the receipt kept the first message, the second is not stored.
        db.rows(
            "DELETE FROM messages m USING receipts rc WHERE m.id = %s AND rc.channel_id = %s"
            " AND rc.provider_id = %s AND rc.message_id <> m.id",
            [message.pk, channel.pk, echo.provider_id],
        )
        # Acks that came first have waited in the receipt.
        db.rows(
            "UPDATE messages m SET status = engine_status(rc.rank), delivered_at = rc.delivered_at,"
            " read_at = rc.read_at FROM receipts rc WHERE m.id = %s AND rc.message_id = m.id AND rc.rank > %s",
            [message.pk, ranks.SENT],
        )
