"""What row-level security costs the hot statements: as the role that serves, in a scope, beside the tables' owner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from bench.figures import Figure, WrongResult, by_turns
from bench.options import Options
from bench.parts.counters import fed
from bench.shop import Shop, open_shop
from broadcasts import selectors
from broadcasts.models import Broadcast
from messaging import doorbell, gate, intake, lanes
from messaging import services as messaging
from messaging.models import Channel, Message, WebhookEvent
from permissions import isolation

# Short rounds, many of them: what the machine does beside meets both alike.
_ROUNDS = 20
_BODY = b'{"event": "message.ack", "payload": {"id": "true_5511999990001@c.us_3EB0", "ack": 2}}'
_FLOOR = 0.8


def run(options: Options) -> list[Figure]:
    shop = open_shop("isolation")
    channel = shop.number("n1")
    people = max(options.people // 4, 100)
    broadcast = fed(shop, people)
    claim = _claim(channel)
    # Whom no policy binds writes down by hand what it would name.
    of_ours = partial(_count, broadcast, organization=shop.organization.pk)
    works = [
        _Work("judging a claim (engine_judge)", "verdict", 500, partial(gate.judge, claim)),
        _Work("keeping a webhook", "row", 100, partial(_keep, channel)),
        _Work(f"counters of {people:,} people", "look", 4, partial(_count, broadcast), of_ours),
        _Work("a page of broadcasts", "page", 50, partial(_page, shop)),
    ]
    return [_figure(shop, work) for work in works]


@dataclass(frozen=True, slots=True)
class _Work:
    """A statement, ``times`` in a round; ``by_hand``: the same as the owner writes it, where it differs."""

    what: str
    unit: str
    times: int
    statement: Callable[[], Any]
    by_hand: Callable[[], Any] | None = None


def _figure(shop: Shop, work: _Work) -> Figure:
    seconds = by_turns(
        _ROUNDS,
        {
            "owner": lambda: _as_owner(work.times, work.by_hand or work.statement),
            "tenant": lambda: _as_tenant(shop, work.times, work.statement),
        },
    )
    # The best of many: whatever the machine does beside only ever makes it longer.
    best = {name: work.times / min(found) for name, found in seconds.items()}
    return Figure(
        what=f"row-level security: {work.what}",
        unit=work.unit,
        ours=best["tenant"],
        against="the tables' owner, whom no policy binds",
        theirs=best["owner"],
        floor=_FLOOR,
        checked=_check(),
    )


def _as_owner(times: int, work: Callable[[], Any]) -> float:
    with isolation.nowhere(), _role("none"):
        return _timed(times, work)


def _as_tenant(shop: Shop, times: int, work: Callable[[], Any]) -> float:
    with isolation.nowhere(), _role(settings.DATABASE_ROLE), isolation.of(shop.organization.pk):
        return _timed(times, work)


@contextmanager
def _role(name: str) -> Iterator[None]:
    """One connection, kept; each role has plans of its own."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {name}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"SET ROLE {settings.DATABASE_ROLE}")


def _timed(times: int, work: Callable[[], Any]) -> float:
    for _ in range(max(times // 10, 2)):
        work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return time.perf_counter() - began


def _claim(channel: Channel) -> lanes.Claim:
    messaging.queue_single(
        channel=channel,
        address="5511999990001",
        text="oi",
        priority=Message.Priority.AUTOMATIC,
        now=timezone.now(),
    )
    (claim,) = lanes.claim(limit=1)
    return claim


def _keep(channel: Channel) -> None:
    # A ring goes to the broker, now and then, whoever stores the row.
    with mock.patch.object(doorbell, "ring_apply"):
        intake.store(channel=channel, body=_BODY, headers={}, request_id="", now=timezone.now())


def _count(broadcast: Broadcast, **conditions: UUID) -> None:
    list(selectors.counted({broadcast.stream_id: broadcast.pk}, **conditions))


def _page(shop: Shop) -> None:
    rows = selectors.visible_to(organization=shop.organization, person=shop.leader, reads_all=True)
    list(rows.order_by("-pk")[:50])


def _check() -> str:
    """The policies were in force: another tenant's rows are not there, whatever is asked."""
    stranger = open_shop(f"stranger-{WebhookEvent.objects.count()}-{time.monotonic_ns() % 10_000}")
    with isolation.of(stranger.organization.pk):
        if Broadcast.unscoped.exists() or WebhookEvent.objects.exists():
            raise WrongResult("another tenant's rows were seen")
    return "another tenant sees none of the rows"
