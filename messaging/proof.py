"""The proof of the engine's promises, from the rows: what must hold of messages, receipts and lanes.

Each check is a query for the rows that break one promise. Those of a run are one statement, so that they look
at one moment even while messages leave. The room above has checks of the same form for its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging import db, ranks
from permissions import ids


@dataclass(frozen=True, slots=True)
class Check:
    """``query`` gives (id, detail) of each breach; ``kind`` is the prefix under which the id is known outside.

    In it ``{scope}`` stands for the condition on its rows, and a name of ``run``'s parts for that part.
    """

    code: str
    kind: str
    query: str


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that a row breaks."""

    code: str
    subject: str
    detail: str

    def __str__(self) -> str:
        """``msg_0199…: left_twice (2 receipts)``."""
        return f"{self.subject}: {self.code}" + (f" ({self.detail})" if self.detail else "")


_LEFT = (
    "({m}.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt')"
    " OR {m}.status = 'failed' AND {m}.error_sent = 'maybe')"
)
_PARTS = {
    "messages": "FROM messages m LEFT JOIN streams s ON s.id = m.stream_id",
    "history": "jsonb_array_elements(m.history) AS h",
    # What the machine may have sent, whatever is known of it.
    "left": _LEFT.format(m="m"),
    "other_left": _LEFT.format(m="other"),
    # A person who takes the risk of a double decides as firmly as a definite "not sent".
    "decided": "(h ->> 'sent' = 'no' OR h ? 'decision')",
    # By the messages; an attempt told as "not sent" has given its place in the day back.
    "left_today": """(
        SELECT count(*) FROM messages m WHERE m.channel_id = l.channel_id AND m.attempt > 0
          AND m.sending_at >= l.day_starts_at AND NOT EXISTS (
            SELECT 1 FROM jsonb_array_elements(m.history) AS h
            WHERE (h ->> 'attempt')::integer = m.attempt AND h ->> 'sent' = 'no'))""",
}

_OF_MESSAGES = (
    # The last attempt of what left is open by right; so is that of a failure that may have left.
    Check(
        "attempt_undecided",
        ids.MESSAGE,
        """
        SELECT m.id, 'attempt ' || n {messages} CROSS JOIN generate_series(1, m.attempt - {left}::integer) AS n
        WHERE {scope} AND NOT EXISTS (SELECT 1 FROM {history} WHERE (h ->> 'attempt')::integer = n AND {decided})
        """,
    ),
    Check(
        "ended_with_an_attempt_open",
        ids.MESSAGE,
        """
        SELECT m.id, m.status || ' after ' || m.attempt || ' attempts' {messages}
        WHERE {scope} AND m.status IN ('canceled', 'expired', 'skipped') AND EXISTS (
          SELECT 1 FROM generate_series(1, m.attempt) AS n WHERE NOT EXISTS (
            SELECT 1 FROM {history} WHERE (h ->> 'attempt')::integer = n AND h ->> 'sent' = 'no'))
        """,
    ),
    Check(
        "history_out_of_order",
        ids.MESSAGE,
        """
        SELECT DISTINCT m.id, 'attempt ' || entry.attempt {messages} CROSS JOIN LATERAL (
          SELECT (h ->> 'attempt')::integer AS attempt, (h ->> 'begun_at')::timestamptz AS begun_at,
                 (h ->> 'ended_at')::timestamptz AS ended_at,
                 lag((h ->> 'attempt')::integer, 1, 0) OVER told AS attempt_before,
                 lag((h ->> 'ended_at')::timestamptz) OVER told AS ended_before
          FROM jsonb_array_elements(m.history) WITH ORDINALITY AS entries (h, place)
          WINDOW told AS (ORDER BY place)) AS entry
        WHERE {scope} AND (
          entry.attempt <= entry.attempt_before OR entry.attempt > m.attempt OR entry.ended_at < entry.begun_at
          OR entry.begun_at < entry.ended_before OR entry.attempt < m.attempt AND m.sending_at < entry.ended_at)
        """,
    ),
    Check(
        "left_without_an_attempt",
        ids.MESSAGE,
        """
        SELECT m.id, m.status {messages}
        WHERE {scope} AND m.origin <> 'external_device' AND {left} AND (m.attempt = 0 OR m.sending_at IS NULL)
        """,
    ),
    Check(
        "sent_without_a_time",
        ids.MESSAGE,
        "SELECT m.id, m.status {messages} WHERE {scope} AND m.status = ANY (%(was_sent)s) AND m.sent_at IS NULL",
    ),
    Check(
        "claimed_without_its_lane",
        ids.MESSAGE,
        """
        SELECT m.id, 'lease ' || coalesce(m.lease::text, 'none') {messages}
        WHERE {scope} AND m.status = 'claimed' AND NOT EXISTS (
          SELECT 1 FROM lanes l WHERE l.channel_id = m.channel_id AND l.busy_message = m.id AND l.lease = m.lease)
        """,
    ),
    Check(
        "sending_forgotten",
        ids.MESSAGE,
        """
        SELECT m.id, 'since ' || m.sending_at {messages}
        WHERE {scope} AND m.status = 'sending'
          AND m.sending_at < clock_timestamp() - make_interval(secs => %(evidence)s)
        """,
    ),
    Check(
        "queued_after_its_end",
        ids.MESSAGE,
        """
        SELECT m.id, m.status || ', stream ' || s.state {messages}
        WHERE {scope} AND m.status IN ('queued', 'claimed') AND s.state IN ('canceled', 'ended')
          AND m.updated_at < clock_timestamp() - make_interval(secs => %(tidy)s)
        """,
    ),
    Check(
        "left_after_its_end",
        ids.MESSAGE,
        """
        SELECT m.id, 'left at ' || m.sending_at {messages}
        WHERE {scope} AND {left} AND m.sending_at > least(m.expires_at, s.expires_at)
        """,
    ),
    Check(
        "another_organization",
        ids.MESSAGE,
        """
        SELECT m.id, '' {messages} JOIN channels c ON c.id = m.channel_id
        WHERE {scope} AND (m.organization_id <> s.organization_id OR m.organization_id <> c.organization_id)
        """,
    ),
    Check(
        "person_written_to_twice",
        ids.MESSAGE,
        """
        SELECT m.id, 'as in message ' || other.id {messages} JOIN messages other
          ON other.stream_id = m.stream_id AND other.contact_id = m.contact_id AND other.id > m.id
        WHERE {scope} AND {left} AND {other_left}
        """,
    ),
    Check(
        "receipt_ahead",
        ids.MESSAGE,
        """
        SELECT m.id, m.status || ', receipt ' || engine_status(r.rank) {messages}
          JOIN receipts r ON r.message_id = m.id
        WHERE {scope} AND r.rank >= %(sent)s AND engine_rank(m.status, m.error_sent) < r.rank
        """,
    ),
    Check(
        "receipt_missing",
        ids.MESSAGE,
        """
        SELECT m.id, 'WhatsApp id ' || m.provider_id {messages}
        WHERE {scope} AND {left} AND m.provider_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM receipts r WHERE r.message_id = m.id
            AND r.channel_id = m.channel_id AND r.provider_id = m.provider_id)
        """,
    ),
    Check(
        "receipt_of_no_attempt",
        ids.MESSAGE,
        """
        SELECT m.id, 'attempt ' || r.attempt || ' of ' || m.attempt {messages}
          JOIN receipts r ON r.message_id = m.id
        WHERE {scope} AND (r.attempt > m.attempt OR r.channel_id <> m.channel_id)
        """,
    ),
    # What was told as "not sent" had left, and was sent again.
    Check(
        "sent_again_after_it_had_left",
        ids.MESSAGE,
        """
        SELECT m.id, 'attempt ' || r.attempt || ' of ' || m.attempt {messages}
          JOIN receipts r ON r.message_id = m.id
        WHERE {scope} AND r.rank >= %(sent)s AND r.attempt < m.attempt AND EXISTS (
          SELECT 1 FROM {history} WHERE (h ->> 'attempt')::integer = r.attempt AND h ->> 'sent' = 'no')
        """,
    ),
    Check(
        "left_twice",
        ids.MESSAGE,
        """
        SELECT m.id, evidence.number || ' receipts' {messages} CROSS JOIN LATERAL (
          SELECT count(*) AS number FROM receipts r WHERE r.message_id = m.id AND r.rank >= %(sent)s) AS evidence
        WHERE {scope} AND evidence.number > 1 + (SELECT count(*) FROM {history} WHERE h ? 'decision')
        """,
    ),
)

_OF_LANES = (
    Check(
        "busy_with_no_message",
        ids.CHANNEL,
        """
        SELECT l.channel_id, 'message ' || l.busy_message FROM lanes l
        WHERE {scope} AND l.busy_message IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM messages m WHERE m.id = l.busy_message AND m.channel_id = l.channel_id)
        """,
    ),
    Check(
        "busy_without_an_end",
        ids.CHANNEL,
        """
        SELECT l.channel_id, '' FROM lanes l
        WHERE {scope} AND (l.busy_message IS NULL) <> (l.busy_until IS NULL)
        """,
    ),
    Check(
        "lease_over_and_not_freed",
        ids.CHANNEL,
        """
        SELECT l.channel_id, 'since ' || l.busy_until FROM lanes l
        WHERE {scope} AND l.busy_until < clock_timestamp() - make_interval(secs => %(tidy)s)
        """,
    ),
    # Below it a cap would be passed.
    Check(
        "used_below_what_left",
        ids.CHANNEL,
        """
        SELECT l.channel_id, 'used ' || l.used || ', left ' || {left_today} FROM lanes l
        WHERE {scope} AND l.day_ends_at > clock_timestamp() AND l.used < {left_today}
        """,
    ),
    # What was written on the phone may count, too, and each attempt of a message that was tried more than once.
    Check(
        "used_above_what_left",
        ids.CHANNEL,
        """
        SELECT l.channel_id, 'used ' || l.used || ', left ' || {left_today} FROM lanes l
        WHERE {scope} AND l.day_ends_at > clock_timestamp() AND l.used > {left_today} + (
          SELECT coalesce(sum(CASE m.origin WHEN 'external_device' THEN 1 ELSE jsonb_array_length(m.history) END), 0)
          FROM messages m WHERE m.channel_id = l.channel_id)
        """,
    ),
    Check(
        "asleep_over_work",
        ids.CHANNEL,
        """
        SELECT DISTINCT l.channel_id, '' FROM lanes l JOIN messages m ON m.channel_id = l.channel_id
          LEFT JOIN streams s ON s.id = m.stream_id
        WHERE {scope} AND l.next_at IS NULL AND l.busy_message IS NULL AND l.connected AND cardinality(l.holds) = 0
          AND m.status = 'queued' AND (m.stream_id IS NULL OR s.state = 'running')
          AND m.updated_at < clock_timestamp() - make_interval(secs => %(tidy)s)
        """,
    ),
)
CODES = tuple(check.code for check in _OF_MESSAGES + _OF_LANES)


def of_stream(stream_id: UUID) -> list[Breach]:
    """What is wrong with the stream's messages, and with the lanes that they are in."""
    named = {"stream": stream_id}
    lanes = "l.channel_id IN (SELECT channel_id FROM messages WHERE stream_id = %(stream)s)"
    return [
        *run(_OF_MESSAGES, scope="m.stream_id = %(stream)s", named=named),
        *run(_OF_LANES, scope=lanes, named=named),
    ]


def of_all() -> list[Breach]:
    """What is wrong with any outbound message, or any lane."""
    return run(_OF_MESSAGES, scope="m.direction = 'out'") + run(_OF_LANES, scope="true")


def run(
    checks: Sequence[Check],
    *,
    scope: str,
    named: Mapping[str, Any] | None = None,
    parts: Mapping[str, str] = _PARTS,
) -> list[Breach]:
    """The breaches that the checks find now, in their order; ``parts`` are what their queries name in braces."""
    # What beat and dispatcher have still to tidy up is no breach yet.
    tidy = 3 * settings.BEAT_SECONDS
    values = {
        "tidy": tidy,
        "evidence": settings.EVIDENCE_SECONDS + tidy,
        "sent": ranks.SENT,
        "was_sent": [status.value for status in ranks.WAS_SENT],
        **(named or {}),
    }
    queries = (check.query.format(scope=scope, **parts) for check in checks)
    numbered = [
        f"SELECT {place}, breach.* FROM ({query}) AS breach (id, detail)"  # noqa: S608 - queries of ours
        for place, query in enumerate(queries)
    ]
    with transaction.atomic():
        # It reads whole tables, and nobody waits for it.
        db.rows("SELECT set_config('statement_timeout', '0', true)")
        found = db.rows(" UNION ALL ".join(numbered) + " ORDER BY 1, 2", values)
    return [Breach(checks[place].code, ids.encode(checks[place].kind, key), detail) for place, key, detail in found]
