"""Paced numbers of many organizations: what a message costs, and how late it leaves, as their number grows.

The same messages a second over a hundredth, a tenth and all of the numbers: what grows is only how many lie there and
wait for their pause to end. Lateness is from the end of a number's pause to the moment in which its next message is
committed as leaving: the tick, the claim, the broker, the gate.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import mean, median, quantiles
from uuid import UUID

from django.conf import settings

from bench import machine, owner, queued, sessions
from bench.adapters import SESSION
from bench.figures import Figure, WrongResult, by_turns
from bench.options import Options
from bench.shop import Shop, open_shop
from broadcast_project.demo.client import Client
from messaging.models import Channel, Stream

ORGANIZATIONS = 50
# Of all numbers together, well within what the machine does.
PER_SECOND = 40.0
_LEAD_SECONDS = 1.0
_DRAIN_SECONDS = 3.0
_FIRST = 5511900000000
# Each number's first pause ends at a moment of its own; from then on all are equally long.
_START = """
UPDATE lanes l SET connected = true, gap = %(gap)s, broadcast_gap = %(gap)s,
    any_at = begins.at, broadcast_at = begins.at, next_at = begins.at
FROM (
  SELECT id, clock_timestamp() + make_interval(secs => %(lead)s + (place - 1) / %(rate)s) AS at
  FROM unnest(%(channels)s::uuid[]) WITH ORDINALITY AS given (id, place)
) AS begins WHERE l.channel_id = begins.id RETURNING l.channel_id, l.any_at
"""
_SENT = """
SELECT organization_id, channel_id, address, sending_at, sent_at FROM messages
WHERE stream_id = ANY (%s) AND sending_at >= %s ORDER BY sending_at
"""


@dataclass
class Step:
    """So many numbers, evenly of all organizations, and what was measured with them."""

    number: int
    messages: int
    channels: list[Channel] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    late: defaultdict[UUID, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    sent: list[str] = field(default_factory=list)

    @property
    def gap(self) -> float:
        return self.number / PER_SECOND

    def prepare(self, shops: Sequence[Shop], first: int, rounds: int) -> int:
        """Make the numbers, and on each what it may send in all rounds; the first phone that is free afterwards."""
        by_shop = []
        for shop, share in zip(shops, queued.shares(self.number, len(shops)), strict=True):
            mine = queued.numbers(shop, "serial", share)
            messages = share * rounds * (self.messages // self.number + 1)
            self.streams.append(queued.fill(shop, mine, first=first, number=messages))
            first += messages
            by_shop.append(mine)
        # The organizations by turns, as chance would have their pauses end.
        self.channels = [mine[place] for place in range(len(by_shop[0])) for mine in by_shop if place < len(mine)]
        return first

    def run(self) -> float:
        """Open all numbers for as long as the messages take; how many a second of processor time has sent."""
        keys = [channel.pk for channel in self.channels]
        with owner.connected() as connection:
            values = {"gap": self.gap, "lead": _LEAD_SECONDS, "rate": PER_SECOND, "channels": keys}
            due = dict(connection.execute(_START, values).fetchall())
            began_at, before = min(due.values()), machine.processor_seconds(os.getppid())
            time.sleep(_LEAD_SECONDS + self.messages / PER_SECOND)
            used = machine.processor_seconds(os.getppid())
            queued.shut(self.channels)
            time.sleep(_DRAIN_SECONDS)
            found = connection.execute(_SENT, [[stream.pk for stream in self.streams], began_at]).fetchall()
        spent = {role: seconds - before.get(role, 0.0) for role, seconds in used.items() if role not in _NOT_OURS}
        for role, seconds in spent.items():
            self.cpu[role] += seconds
        for organization, channel, address, sending_at, sent_at in found:
            self.late[organization].append((sending_at - due[channel]).total_seconds() * 1000)
            due[channel] = sent_at + timedelta(seconds=self.gap)
            self.sent.append(f"{address}@c.us")
        return len(found) / sum(spent.values())

    def milliseconds(self) -> dict[str, float]:
        """Of processor time for each message, by process."""
        return {role: round(seconds * 1000 / len(self.sent), 2) for role, seconds in self.cpu.items()}

    def tell(self) -> str:
        """How late messages were, and how evenly that fell on the organizations; in milliseconds."""
        of_all = sorted(one for late in self.late.values() for one in late)
        means = [mean(late) for late in self.late.values()]
        p99 = quantiles(of_all, n=100)[98]
        return (
            f"{len(of_all)} messages late by p50 {median(of_all):.0f} ms, p99 {p99:.0f} ms; of {len(means)} "
            f"organizations the latest by {max(means):.0f} ms on average, the least late by {min(means):.0f} ms"
        )


_NOT_OURS = {"simulator", "bench"}


def run(options: Options) -> list[Figure]:
    simulator = Client(settings.WAHA_BASE_URL)
    sessions.pair_plain(SESSION)
    numbers = sorted({max(options.paced // part, 1) for part in (100, 10, 1)})
    shops = [open_shop(f"lanes-{place}") for place in range(min(ORGANIZATIONS, numbers[0]))]
    steps, first = [Step(number, options.messages) for number in numbers], _FIRST
    for step in steps:
        first = step.prepare(shops, first, options.rounds)
    queued.analyze()
    rates = by_turns(options.rounds, {str(step.number): step.run for step in steps})
    checked = _check(simulator, steps)
    least = steps[0]
    return [
        Figure(
            what=f"{step.number:,} paced numbers",
            unit="message",
            ours=median(rates[str(step.number)]),
            against=f"{least.number:,} of them, a second of processor",
            theirs=median(rates[str(least.number)]),
            floor=0.8,
            cpu=step.milliseconds(),
            checked=f"{step.tell()}; {checked}",
        )
        for step in steps
    ]


def _check(simulator: Client, steps: Sequence[Step]) -> str:
    """The book holds each message that the rows call sent, once, and no other. Raises WrongResult."""
    book = Counter(entry["chat_id"] for entry in simulator.get("/control/book"))
    sent = Counter(address for step in steps for address in step.sent)
    if book != sent or any(number > 1 for number in book.values()):
        raise WrongResult(f"the book and the rows differ by {len((book - sent) + (sent - book))} messages")
    return f"the book: {len(sent)} people in all steps, one message each"
