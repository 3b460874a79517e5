"""The demo's play: post a broadcast, watch it to its end, and ask the witness what the phones got."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import uuid4

from broadcast_project.demo.client import Client

VARIATIONS = [
    "Oi {{nome}}, {saiu|chegou} o curso {{curso}}! Veja em {{link}}",
    "{{nome}}, o curso {{curso}} já {está no ar|pode ser visto}: {{link}}",
    "{Olá|Oi}, {{nome}}! Novidade: {{curso}}. Acesse {{link}}",
    "Boa notícia, {{nome}}: {{curso}} {começou|está disponível}. {{link}}",
    "{{nome}}, lembra do curso {{curso}}? {Saiu|Chegou}! {{link}}",
]
VARIABLES = {"curso": "Python", "link": "https://app.example/curso/123"}

_POLL_SECONDS = 1.0
_ACKS_SECONDS = 120.0
# What the pacing rules allow at the least between two broadcast messages of a number.
LEAST_GAP = 5.0


@dataclass(frozen=True, slots=True)
class Witness:
    """What the simulator saw: people, messages, and the least gap between two of one number."""

    people: int
    messages: int
    doubled: int
    least_gap: float | None


def body(group_id: str, channel_ids: Sequence[str]) -> dict[str, Any]:
    """The broadcast of the demo, as the contract has it."""
    return {
        "group_id": group_id,
        "channel_ids": list(channel_ids),
        "variations": VARIATIONS,
        "variables": VARIABLES,
        "name": "Curso de Python",
    }


def curl(url: str, key: str, request: Mapping[str, Any]) -> str:
    """A command line that repeats the broadcast."""
    return (
        f"curl -sS {url}/api/v1/broadcasts \\\n  -H 'Authorization: Bearer {key}' \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -H 'Idempotency-Key: '$(date +%s) \\\n"
        f"  -d '{json.dumps(request, ensure_ascii=False)}'"
    )


def post(api: Client, request: Mapping[str, Any]) -> Any:
    """Post the broadcast, as an outside system would."""
    return api.post("/api/v1/broadcasts", request, Idempotency_Key=f"demo-{uuid4()}")


def watch(api: Client, simulator: Client, broadcast_id: str, wait: Callable[[float], None]) -> Iterator[Any]:
    """The broadcast once a second, until it is over and every ack that will come is in."""
    acks_until: float | None = None
    while True:
        state = api.get(f"/api/v1/broadcasts/{broadcast_id}")
        yield state
        if state["status"] in {"completed", "canceled", "failed"}:
            acks_until = acks_until or time.monotonic() + _ACKS_SECONDS
            if _is_settled(state, simulator) or time.monotonic() > acks_until:
                return
        wait(_POLL_SECONDS)


def ask_witness(simulator: Client, since: float) -> Witness:
    """Read the simulator's book: it saw what the phones really got."""
    book = [entry for entry in simulator.get("/control/book", source="api") if entry["acted_at"] >= since]
    people = Counter(entry["chat_id"] for entry in book)
    by_number: defaultdict[str, list[float]] = defaultdict(list)
    for entry in book:
        by_number[entry["session"]].append(entry["acted_at"])
    gaps = [later - earlier for times in by_number.values() for earlier, later in pairwise(sorted(times))]
    return Witness(
        people=len(people),
        messages=len(book),
        doubled=sum(number - 1 for number in people.values()),
        least_gap=min(gaps, default=None),
    )


def _is_settled(state: Mapping[str, Any], simulator: Client) -> bool:
    """Every message that left is delivered or read, and no webhook is under way."""
    return bool(state["counts"]["sent"] == 0 and simulator.get("/control/state")["webhooks"]["pending"] == 0)
