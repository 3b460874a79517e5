"""The feed: recipients into a lane's queue, beside a COPY of the same messages."""

from __future__ import annotations

import time

from django.utils import timezone

from bench import owner
from bench.figures import Figure, WrongResult
from bench.options import Options
from bench.shop import Shop, open_shop
from broadcasts import feed, services
from broadcasts.models import Broadcast
from messaging.models import Message

_COLUMNS = [str(field.column) for field in Message._meta.local_concrete_fields]


def run(options: Options) -> list[Figure]:
    people = max(options.people // 20, 100)
    shop = open_shop("feeding")
    fed = [_feed(shop, number, people) for number in range(options.rounds)]
    copied = [_copy(broadcast) for broadcast, _took in fed]
    rows = people * 9 // 10
    return [
        Figure(
            what=f"feeding {rows:,} messages of one broadcast",
            unit="message",
            ours=rows / sorted(took for _broadcast, took in fed)[len(fed) // 2],
            against="COPY of the same messages",
            theirs=rows / sorted(copied)[len(copied) // 2],
            floor=0.1,
            checked=_check(shop, [broadcast for broadcast, _took in fed], rows),
        )
    ]


def _launched(shop: Shop, name: str, people: int, first: int, numbers: int) -> Broadcast:
    group = shop.group(name, people=people, first=first)
    channels = [shop.number(f"{name} {number}") for number in range(numbers)]
    broadcast = services.compose(
        organization=shop.organization, owner=shop.leader, draft=shop.draft(group, channels), now=timezone.now()
    )
    broadcast.status = Broadcast.Status.QUEUED
    broadcast.save(update_fields=["status"])
    services.launch_due(now=timezone.now())
    return broadcast


def _feed(shop: Shop, number: int, people: int) -> tuple[Broadcast, float]:
    broadcast = _launched(shop, f"feed-{number}", people, 300_000_000 + number * people, 4)
    began = time.perf_counter()
    while feed.run(now=timezone.now()):
        pass
    return broadcast, time.perf_counter() - began


def _copy(broadcast: Broadcast) -> float:
    columns = ", ".join("uuid7()" if column == "id" else column for column in _COLUMNS)
    query = f"SELECT {columns} FROM messages WHERE stream_id = %s"  # noqa: S608 - columns of the model
    with owner.connected() as connection:
        data = owner.copied_out(connection, query, [broadcast.stream_id])
        began = time.perf_counter()
        with connection.transaction(force_rollback=True):
            owner.copy_in(connection, "messages", _COLUMNS, data)
            # As a commit would check them.
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            return time.perf_counter() - began


def _check(shop: Shop, broadcasts: list[Broadcast], rows: int) -> str:
    for broadcast in broadcasts:
        found = Message.objects.of(shop.organization).filter(stream=broadcast.stream_id)
        if found.count() != rows or found.exclude(status=Message.Status.QUEUED).exists():
            raise WrongResult(f"{found.count()} messages were queued, of {rows}")
    return f"{rows} messages queued of each broadcast, none twice"
