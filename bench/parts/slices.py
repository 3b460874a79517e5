"""One number that is not serial: reserved, gated and settled in slices, beside a bare loop and the usual design.

All speak to the same session of the simulator, which posts no webhooks: what is measured is the way out.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from django.conf import settings

from bench import queued, sessions
from bench.adapters import RATE, SESSION
from bench.figures import Figure, by_turns
from bench.options import Options
from bench.parts import engine
from bench.parts.engine import Contender
from bench.shop import open_shop
from broadcast_project.demo.client import Client


def run(options: Options) -> list[Figure]:
    simulator = Client(settings.WAHA_BASE_URL)
    subprocess.run([sys.executable, "-m", "bench.usual.tables"], check=True)
    shop = open_shop("slices")
    channels = queued.numbers(shop, "pooled", 1, rate=RATE)
    for name in (SESSION, "bare", "usual"):
        sessions.pair_plain(name)
    queued.open_up(channels)

    def send(first: int, number: int) -> None:
        queued.wait_for(queued.fill(shop, channels, first=first, number=number))

    make = {"product": send, "bare": engine.send_bare, "usual": engine.send_usual}
    contenders = {name: Contender(name, way, simulator, options.messages * 3) for name, way in make.items()}
    with engine.usual_worker():
        rates = by_turns(options.rounds, {name: contender.run for name, contender in contenders.items()})
    checked = {name: contender.check() for name, contender in contenders.items()}
    ours = median(rates["product"])
    return [
        Figure(
            what="slices: queue → gate → send → settle",
            unit="message",
            ours=ours,
            against="bare keep-alive loop",
            theirs=median(rates["bare"]),
            cpu=contenders["product"].milliseconds(),
            checked=checked["product"],
        ),
        Figure(
            what="slices beside the usual design",
            unit="message",
            ours=ours,
            against="Celery task a recipient, ORM get and save",
            theirs=median(rates["usual"]),
            floor=3.0,
            cpu=contenders["usual"].milliseconds(),
            checked=checked["usual"],
        ),
    ]
