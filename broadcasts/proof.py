"""The proof of a broadcast, from the rows: what must hold of its people and of their messages.

What must hold of messages, receipts and lanes as such is the engine's (``messaging.proof``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from broadcasts import selectors
from broadcasts.models import Broadcast, Recipient
from messaging import proof
from messaging.models import Message
from messaging.proof import Breach, Check
from permissions import ids

State = Recipient.State

# A status of a message that the counters do not tell apart from another.
_FOLDED = {"claimed": "queued", "played": "read"}
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Proof:
    """What the rows say of one broadcast. ``states`` counts people not fed, ``statuses`` messages."""

    broadcast: Broadcast
    states: dict[str, int]
    statuses: dict[str, int]
    breaches: list[Breach] = field(default_factory=list)

    @property
    def people(self) -> int:
        """Everybody whom the broadcast froze, the excluded too."""
        return sum(self.states.values()) + sum(self.statuses.values())


_PARTS = {
    "people": "FROM broadcast_recipients r JOIN broadcasts b ON b.id = r.broadcast_id"
    " LEFT JOIN messages m ON m.id = r.message_id"
}
_CHECKS = (
    Check(
        "fed_without_a_message",
        ids.RECIPIENT,
        "SELECT r.id, '' {people} WHERE {scope} AND r.state = 'fed' AND m.id IS NULL",
    ),
    Check(
        "message_of_somebody_not_fed",
        ids.RECIPIENT,
        """
        SELECT r.id, r.state || ', message ' || m.status {people}
        WHERE {scope} AND r.state <> 'fed' AND m.id IS NOT NULL
        """,
    ),
    Check(
        "message_of_nobody",
        ids.MESSAGE,
        """
        SELECT m.id, m.status FROM messages m JOIN broadcasts b ON b.stream_id = m.stream_id
        WHERE {scope} AND NOT EXISTS (
          SELECT 1 FROM broadcast_recipients r WHERE r.message_id = m.id AND r.broadcast_id = b.id)
        """,
    ),
    Check(
        "message_in_another_place",
        ids.RECIPIENT,
        """
        SELECT r.id, 'message ' || m.id {people}
        WHERE {scope} AND m.id IS NOT NULL AND (
          m.stream_id IS DISTINCT FROM b.stream_id OR m.channel_id IS DISTINCT FROM r.channel_id
          OR m.organization_id <> r.organization_id OR r.organization_id <> b.organization_id)
        """,
    ),
    Check(
        "person_frozen_twice",
        ids.BROADCAST,
        """
        SELECT b.id, count(*) || ' lines, first ' || min(r.position) {people}
        WHERE {scope} AND r.state <> 'excluded' GROUP BY b.id, r.person_key HAVING count(*) > 1
        """,
    ),
    Check(
        "left_out_without_a_reason",
        ids.RECIPIENT,
        """
        SELECT r.id, r.state {people}
        WHERE {scope} AND r.code = '' AND r.state IN ('excluded', 'skipped', 'canceled', 'expired')
        """,
    ),
    Check(
        "unfinished_at_the_end",
        ids.RECIPIENT,
        """
        SELECT r.id, b.status || ', ' || coalesce(m.status, r.state) {people}
        WHERE {scope} AND (b.status IN ('completed', 'canceled', 'failed') AND r.state = 'pending'
                           OR b.status = 'completed' AND m.status IN ('queued', 'claimed', 'sending'))
        """,
    ),
    Check(
        "stream_disagrees",
        ids.BROADCAST,
        """
        SELECT b.id, b.status || ', stream ' || s.state FROM broadcasts b JOIN streams s ON s.id = b.stream_id
        WHERE {scope} AND s.state <> CASE b.status
          WHEN 'completed' THEN 'ended' WHEN 'canceled' THEN 'canceled' WHEN 'failed' THEN 'canceled'
          WHEN 'paused' THEN 'paused' ELSE 'running' END
        """,
    ),
    Check(
        "end_without_its_time",
        ids.BROADCAST,
        """
        SELECT b.id, b.status FROM broadcasts b
        WHERE {scope} AND (b.status IN ('completed', 'canceled', 'failed')) <> (b.finished_at IS NOT NULL)
        """,
    ),
)
CODES = (*(check.code for check in _CHECKS), "counters_disagree")


def of(broadcast: Broadcast) -> Proof:
    """Everything that the rows say of one broadcast: people, messages, and the lanes they are in."""
    own = proof.run(_CHECKS, scope="b.id = %(broadcast)s", named={"broadcast": broadcast.pk}, parts=_PARTS)
    return _counted(broadcast, own + proof.of_stream(broadcast.stream_id))


def of_all() -> tuple[list[Proof], list[Breach]]:
    """Every broadcast's figures, and what is wrong with any of them, any outbound message or any lane."""
    proofs = [_counted(broadcast, []) for broadcast in Broadcast.unscoped.order_by("created_at")]
    rows = proof.run(_CHECKS, scope="true", parts=_PARTS) + proof.of_all()
    return proofs, [*rows, *(breach for each in proofs for breach in each.breaches)]


def _counted(broadcast: Broadcast, breaches: list[Breach]) -> Proof:
    """The rows by state, and whether the counters that everybody sees say the same of them.

    They are two statements: where messages leave meanwhile it is looked again.
    """
    for _try in range(_TRIES):
        shown = selectors.tally(broadcast).counts
        states, statuses = _by_state(broadcast)
        if _as_shown(states, statuses) == {word: number for word, number in shown.items() if number}:
            return Proof(broadcast, states, statuses, breaches)
        if selectors.tally(broadcast).counts == shown:
            break
    detail = f"shown {_words(shown)}, rows {_words(_as_shown(states, statuses))}"
    breach = Breach("counters_disagree", ids.encode(ids.BROADCAST, broadcast.pk), detail)
    return Proof(broadcast, states, statuses, [*breaches, breach])


def _by_state(broadcast: Broadcast) -> tuple[dict[str, int], dict[str, int]]:
    """People not fed by state, and messages of those who are, by status; through the recipients' own rows."""
    people = Recipient.objects.of(broadcast.organization_id).filter(broadcast=broadcast)
    states = dict(people.exclude(state=State.FED).values_list("state").annotate(number=Count("pk")).order_by("state"))
    fed = people.filter(state=State.FED).values("message_id")
    messages = Message.objects.of(broadcast.organization_id).filter(pk__in=fed)
    return states, dict(messages.values_list("status").annotate(number=Count("pk")).order_by("status"))


def _as_shown(states: dict[str, int], statuses: dict[str, int]) -> dict[str, int]:
    shown = dict(states)
    for status, number in statuses.items():
        word = _FOLDED.get(status, status)
        shown[word] = shown.get(word, 0) + number
    return shown


def _words(counts: Mapping[str, int]) -> str:
    return " ".join(f"{word}={number}" for word, number in sorted(counts.items()))
