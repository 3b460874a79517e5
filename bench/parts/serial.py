"""Serial numbers without gaps, each a session of its own: the whole stack, with echo and acks of each message.

What the lanes' pace leaves out of account in a real run is all there is here: claim, gate, post, settle, four webhooks.
Beside it the bare loop of posts to the same simulator.
"""

from __future__ import annotations

import time
from statistics import median

from django.conf import settings

from bench import queued, sessions
from bench.figures import Figure, WrongResult, by_turns
from bench.options import Options
from bench.parts import engine
from bench.parts.engine import Contender
from bench.shop import open_shop
from broadcast_project.demo.client import Client
from messaging.models import Message, Stream

ORGANIZATIONS = 50
_PATIENCE_SECONDS = 180.0
_REACHED = (Message.Status.DELIVERED, Message.Status.READ, Message.Status.PLAYED)


def run(options: Options) -> list[Figure]:
    simulator = Client(settings.WAHA_BASE_URL)
    sessions.pair_plain("bare")
    shops = [open_shop(f"serial-{place}") for place in range(min(ORGANIZATIONS, options.serial))]
    channels = [
        queued.numbers(shop, "waha", number)
        for shop, number in zip(shops, queued.shares(options.serial, len(shops)), strict=True)
    ]
    for shop, mine in zip(shops, channels, strict=True):
        sessions.pair(shop, mine)

    def send(first: int, number: int) -> None:
        streams = []
        for shop, mine, share in zip(shops, channels, queued.shares(number, len(shops)), strict=True):
            streams.append(queued.fill(shop, mine, first=first, number=share))
            first += share
        queued.analyze()
        for mine in channels:
            queued.open_up(mine)
        queued.wait_for(*streams, patience=_PATIENCE_SECONDS)
        _wait_for_acks(streams, number)

    make = {"product": send, "bare": engine.send_bare}
    contenders = {name: Contender(name, way, simulator, options.messages * 3) for name, way in make.items()}
    rates = by_turns(options.rounds, {name: contender.run for name, contender in contenders.items()})
    checked = {name: contender.check() for name, contender in contenders.items()}
    return [
        Figure(
            what=f"{options.serial:,} serial numbers: queue → gate → send → acks",
            unit="message",
            ours=median(rates["product"]),
            against="bare keep-alive loop, no acks",
            theirs=median(rates["bare"]),
            cpu=contenders["product"].milliseconds(),
            checked=checked["product"] + ", each delivered by its acks",
        )
    ]


def _wait_for_acks(streams: list[Stream], number: int) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while (reached := Message.unscoped.filter(stream__in=streams, status__in=_REACHED).count()) < number:
        if time.monotonic() > give_up:
            raise WrongResult(f"{reached} of {number} were delivered")
        time.sleep(0.2)
