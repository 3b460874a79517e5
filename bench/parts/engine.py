"""The whole way of a message, paces off: the product, a bare loop of posts, and the usual design, by turns.

Each sends to the same simulator, whose book says afterwards who got what. The product's share holds all that the
others leave out: the gate, the echo and three acks of every message received, stored and applied.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, repeat
from statistics import median
from typing import Any

import redis
import requests
from django.conf import settings
from django.db import connection
from django.utils import timezone

from audience import joining
from audience.joining import Line
from bench import machine, sessions
from bench.figures import Figure, WrongResult, by_turns
from bench.options import Options
from bench.shop import TEXTS, Shop, open_shop
from broadcast_project.demo.client import Client
from broadcasts.models import Broadcast
from channels_waha import lifecycle
from channels_waha import services as waha
from channels_waha.models import ChannelSession
from events import services as events
from messaging.models import Channel, Message
from permissions import ids, isolation

# Below the number of people from which somebody has to approve.
_PER_BROADCAST = 400
_THREADS = 16
_PAIRING_SECONDS = 60.0
_PATIENCE_SECONDS = 120.0
_LIMITED_SECONDS = 10.0
_FIRST = {"product": 5511900000000, "bare": 5521900000000, "usual": 5531900000000, "limited": 5541900000000}
_REACHED = (Message.Status.DELIVERED, Message.Status.READ, Message.Status.PLAYED)


@dataclass
class Contender:
    """One way of sending, its runs so far, and the processor time they took."""

    name: str
    send: Callable[[int, int], None]
    simulator: Client
    messages: int
    runs: int = 0
    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    book: list[Mapping[str, Any]] = field(default_factory=list)

    def run(self) -> float:
        """Send one round to people of its own; messages a second by the simulator's clock."""
        first = _FIRST[self.name] + self.runs * self.messages
        self.runs += 1
        before = machine.processor_seconds(os.getppid())
        self.send(first, self.messages)
        for role, seconds in machine.processor_seconds(os.getppid()).items():
            self.cpu[role] += seconds - before.get(role, 0.0)
        wanted = {f"{first + place}@c.us" for place in range(self.messages)}
        mine = [entry for entry in self.simulator.get("/control/book") if entry["chat_id"] in wanted]
        self.book += mine
        acted = [entry["acted_at"] for entry in mine]
        return (len(mine) - 1) / (max(acted) - min(acted)) if len(mine) > 1 else 0.0

    def milliseconds(self) -> dict[str, float]:
        """Of processor time for each message, by process; the simulator's and the bench's own left out."""
        sent = max(len(self.book), 1)
        each = {role: seconds * 1000 / sent for role, seconds in self.cpu.items() if role not in {"simulator", "bench"}}
        return {role: round(cost, 2) for role, cost in each.items() if cost >= 0.05}

    def check(self) -> str:
        """Everybody got one message, and nobody else any. Raises WrongResult."""
        got = Counter(entry["chat_id"] for entry in self.book)
        wanted = {f"{_FIRST[self.name] + place}@c.us" for place in range(self.runs * self.messages)}
        if set(got) != wanted or set(got.values()) != {1}:
            twice = sum(number > 1 for number in got.values())
            raise WrongResult(f"{self.name}: {len(wanted - set(got))} got nothing, {twice} got it more than once")
        return f"the book: {len(wanted)} people, one message each"


def run(options: Options) -> list[Figure]:
    simulator = Client(settings.WAHA_BASE_URL)
    subprocess.run([sys.executable, "-m", "bench.usual.tables"], check=True)
    ours = _Product(options, simulator)
    for name in ("bare", "usual"):
        sessions.pair_plain(name)
    make = {"product": ours.send, "bare": send_bare, "usual": send_usual}
    contenders = {name: Contender(name, send, simulator, options.messages) for name, send in make.items()}
    with usual_worker():
        rates = by_turns(options.rounds, {name: contender.run for name, contender in contenders.items()})
        limited = Contender("limited", _send_limited, simulator, options.messages)
        limited_rate = limited.run()
    checked = {name: contender.check() for name, contender in contenders.items()}
    ours.check()
    product_rate = median(rates["product"])
    figures = [
        Figure(
            what="engine: queue → gate → send → acks",
            unit="message",
            ours=product_rate,
            against=f"bare keep-alive loop, {_THREADS} threads",
            theirs=median(rates["bare"]),
            cpu=contenders["product"].milliseconds(),
            checked=checked["product"] + ", each delivered by its acks",
        ),
        Figure(
            what="engine beside the usual design",
            unit="message",
            ours=product_rate,
            against="Celery task a recipient, ORM get and save",
            theirs=median(rates["usual"]),
            cpu=contenders["usual"].milliseconds(),
            checked=checked["usual"],
        ),
    ]
    if limited_rate:
        limited_figure = Figure(
            what="engine beside the usual rate_limit",
            unit="message",
            ours=product_rate,
            against='the same with rate_limit="100/s"',
            theirs=limited_rate,
            checked=f"{len(limited.book)} of {options.messages} left in {_LIMITED_SECONDS:.0f} s",
        )
        figures.append(limited_figure)
    return figures


class _Product:
    """The product as it stands: broadcasts over its API, sent by its processes."""

    def __init__(self, options: Options, simulator: Client) -> None:
        self.shop: Shop = open_shop("engine")
        self.api = Client(os.environ["PUBLIC_BASE_URL"], key=self.shop.key)
        self.channels = _numbers(self.shop, simulator, options.numbers)
        self.broadcasts: list[str] = []

    def send(self, first: int, number: int) -> None:
        """Post broadcasts to so many people, and wait until the acks of all have come."""
        bodies = []
        for start in range(0, number, _PER_BROADCAST):
            group = self.shop.empty_group(f"engine-{first + start}")
            people = range(first + start, first + min(start + _PER_BROADCAST, number))
            lines = [
                Line(given_phone=str(phone), name=f"Pessoa {phone}", attributes={"cidade": "Rio"}) for phone in people
            ]
            joining.add_members(group=group, lines=lines, now=timezone.now())
            bodies.append(self._body(group.external_id))
        posted = [self.api.post("/api/v1/broadcasts", body)["broadcast_id"] for body in bodies]
        self.broadcasts += posted
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while self._reached(posted) < number:
            if time.monotonic() > give_up:
                raise WrongResult(f"after {_PATIENCE_SECONDS:.0f} s {self._reached(posted)} of {number} were delivered")
            time.sleep(0.2)

    def check(self) -> None:
        """The product's own figures say what the book says."""
        for broadcast in self.broadcasts:
            state = self.api.get(f"/api/v1/broadcasts/{broadcast}")
            if state["delivered_count"] != state["total_count"] or state["failed_count"]:
                raise WrongResult(f"counted: {state['counts']}")

    def _body(self, group: str) -> dict[str, Any]:
        channels = [ids.encode(ids.CHANNEL, channel.pk) for channel in self.channels]
        return {"group_id": group, "variations": list(TEXTS), "variables": {"curso": "Python"}, "channel_ids": channels}

    def _reached(self, posted: Sequence[str]) -> int:
        wanted = [found for text in posted if (found := ids.decode(ids.BROADCAST, text))]
        streams = Broadcast.objects.of(self.shop.organization).filter(pk__in=wanted).values("stream")
        return Message.objects.of(self.shop.organization).filter(stream__in=streams, status__in=_REACHED).count()


def _numbers(shop: Shop, simulator: Client, number: int) -> list[Channel]:
    """Sessions connected and paired as people do it, then old enough and open."""
    now = timezone.now()
    sessions = [
        waha.create_session(
            organization=shop.organization, display_name=f"Número {place}", actor=events.user(shop.root), now=now
        )
        for place in range(number)
    ]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(_pair, repeat(simulator), count(), sessions))
    for session in sessions:
        shop.open(session.channel)
    return [session.channel for session in sessions]


def _pair(simulator: Client, place: int, session: ChannelSession) -> None:
    try:
        with isolation.of(session.organization_id):
            _connect(simulator, place, session)
    finally:
        connection.close()


def _connect(simulator: Client, place: int, session: ChannelSession) -> None:
    session = lifecycle.connect(session)
    _scan(simulator, session.session_name, f"55119700{place:05}")
    give_up = time.monotonic() + _PAIRING_SECONDS
    while lifecycle.refresh(session).status != ChannelSession.Status.WORKING:
        if time.monotonic() > give_up:
            raise TimeoutError(f"{session.session_name} does not connect")
        time.sleep(0.1)


def _scan(simulator: Client, name: str, phone: str) -> None:
    """Scan the QR code as soon as one is shown."""
    give_up = time.monotonic() + _PAIRING_SECONDS
    while True:
        try:
            simulator.post(f"/control/sessions/{name}/scan", {"phone": phone, "push_name": "Escola"})
        except requests.HTTPError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)
        else:
            return


_local = threading.local()


def send_bare(first: int, number: int) -> None:
    """Nothing but the posts: what no design that uses requests can pass."""

    def post(phone: int) -> None:
        if not hasattr(_local, "session"):
            _local.session = requests.Session()
            _local.session.trust_env = False
            _local.session.headers["X-Api-Key"] = settings.WAHA_API_KEY
        body = {"session": "bare", "chatId": f"{phone}@c.us", "text": f"Oi Pessoa {phone}, o curso Python tem turma."}
        _local.session.post(f"{settings.WAHA_BASE_URL}/api/sendText", json=body, timeout=(3.05, 20)).raise_for_status()

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(post, range(first, first + number)))


def send_usual(first: int, number: int) -> None:
    _run_usual("usual.send", first, number, _PATIENCE_SECONDS)


def _send_limited(first: int, number: int) -> None:
    _run_usual("usual.send_limited", first, number, _LIMITED_SECONDS)


def _run_usual(task: str, first: int, number: int, seconds: float) -> None:
    command = [sys.executable, "-m", "bench.usual.run", task, str(number), str(first), "usual", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own command
    json.loads(done.stdout)


@contextmanager
def usual_worker() -> Iterator[None]:
    """A worker as wide as the product's; what it left in its queue goes with it."""
    options = ["worker", "-P", "threads", "-c", str(_THREADS), "--loglevel", "ERROR"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "bench.usual.worker", *options, *quiet]
    # It warns where root runs it, and greets: neither is a figure.
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    worker = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        yield
    finally:
        worker.kill()
        worker.wait(timeout=30)
        with suppress(redis.RedisError), redis.Redis.from_url(_usual_broker()) as broker:
            broker.flushdb()


def _usual_broker() -> str:
    return f"{settings.REDIS_URL.rsplit('/', 1)[0]}/9"
