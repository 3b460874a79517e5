"""What the processes hold in memory after a tenth, a half and all of a long run, echoes and acks among it."""

from __future__ import annotations

import os
import time

from django.conf import settings

from bench import machine, queued, sessions
from bench.adapters import RATE, SESSION
from bench.figures import Figure, WrongResult
from bench.options import Options
from bench.shop import open_shop
from broadcast_project.demo.client import Client
from messaging.models import Channel, Message, WebhookEvent

PARTS = (0.1, 0.5, 1.0)
ROLES = ("worker", "web", "dispatcher")
# A long run is asked for: --messages 8000 sends 200,000.
_TIMES = 25
_BATCH = 2_000
_SECONDS_EACH = 0.1
_FIRST = 5511900000000
_REACHED = (Message.Status.DELIVERED, Message.Status.READ, Message.Status.PLAYED)


def run(options: Options) -> list[Figure]:
    simulator = Client(settings.WAHA_BASE_URL)
    shop = open_shop("memory")
    channels = queued.numbers(shop, "pooled", 1, rate=RATE)
    sessions.pair(shop, channels, name=SESSION)
    total = options.messages * _TIMES
    held, sent, marks = [], 0, [int(total * part) for part in PARTS]
    for mark in marks:
        while sent < mark:
            number = min(_BATCH, mark - sent)
            stream = queued.fill(shop, channels, first=_FIRST + sent, number=number)
            queued.open_up(channels)
            queued.wait_for(stream, patience=_SECONDS_EACH * number + 60)
            sent += number
        _wait_for_acks(channels[0], sent)
        held.append(machine.resident_mib(os.getppid()))
    checked = _check(simulator, total)
    return [
        Figure(
            what=f"memory of {role} after {total:,} messages",
            unit="MiB",
            ours=held[-1][role],
            against=f"after a tenth; {held[1][role]:.0f} after half",
            theirs=held[0][role],
            ceiling=1.25,
            is_rate=False,
            checked=checked,
        )
        for role in ROLES
    ]


def _wait_for_acks(channel: Channel, number: int) -> None:
    """Until all are delivered and every webhook is applied, so that nothing that is held is still of use."""
    give_up = time.monotonic() + _SECONDS_EACH * number + 60
    mine = Message.unscoped.filter(channel=channel)
    waiting = WebhookEvent.objects.filter(channel=channel, state=WebhookEvent.State.RECEIVED)
    while (reached := mine.filter(status__in=_REACHED).count()) < number or waiting.exists():
        if time.monotonic() > give_up:
            raise WrongResult(f"{reached} of {number} were delivered")
        time.sleep(0.5)


def _check(simulator: Client, number: int) -> str:
    book = [entry["chat_id"] for entry in simulator.get("/control/book")]
    if len(book) != number or len(set(book)) != number:
        raise WrongResult(f"the book holds {len(book)} messages to {len(set(book))} people, not {number}")
    return f"the book: {number} people, one message each, each delivered by its acks"
