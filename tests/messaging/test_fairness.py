"""Threads between organizations: a slow gateway of one delays nobody else."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from messaging import db, delivery, lanes, services
from messaging.adapters import Outgoing
from messaging.lanes import Claim
from messaging.models import Channel, Message
from permissions import isolation
from permissions.isolation import Sweep
from tests.messaging.conftest import Lab, ScriptedAdapter
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 32


@pytest.fixture(autouse=True)
def _threads(settings: Settings) -> None:
    settings.SEND_THREADS = THREADS


def asleep(lab: Lab) -> Lab:
    """Its own number, which has no work, is found so."""
    lab.lane(next_at="NULL")
    return lab


def with_work(lab: Lab, number: int) -> None:
    """So many numbers of the organization, each with a message."""
    for place in range(number):
        channel = services.create_channel(
            organization=lab.organization, kind="waha", name=str(place), now=db.database_now()
        )
        Channel.unscoped.filter(pk=channel.pk).update(
            in_use_since="2020-01-01", window_opens="00:00", window_closes="00:00"
        )
        services.set_connected(channel.pk, connected=True, now=db.database_now())
        services.queue_single(
            channel=channel,
            address="5511999990001",
            text="oi",
            priority=Message.Priority.AUTOMATIC,
            now=db.database_now(),
        )


def of(lab: Lab, claims: list[Claim]) -> int:
    return sum(claim.organization_id == lab.organization.pk for claim in claims)


def test_one_alone_takes_three_quarters_and_what_is_left_is_for_the_next(make_lab: Callable[..., Lab]) -> None:
    big, small = asleep(make_lab("grande")), asleep(make_lab("pequena"))
    with_work(big, 40)
    assert of(big, lanes.claim(limit=200)) == 24
    assert lanes.claim(limit=200) == []
    with_work(small, 2)
    claims = lanes.claim(limit=200)
    assert (of(small, claims), len(claims)) == (2, 2)


def test_those_who_have_work_share_evenly(make_lab: Callable[..., Lab]) -> None:
    labs = [asleep(make_lab(f"loja{place}")) for place in range(4)]
    for lab in labs:
        with_work(lab, 10)
    assert Counter(claim.organization_id for claim in lanes.claim(limit=200)) == {
        lab.organization.pk: 6 for lab in labs
    }


@pytest.fixture
def workers() -> Iterator[Callable[[Claim], Future[str]]]:
    def work(claim: Claim) -> str:
        try:
            with isolation.across_tenants(Sweep.COMMAND, "test"):
                return delivery.deliver(claim)
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        yield lambda claim: pool.submit(work, claim)


def test_a_slow_gateway_of_one_holds_up_no_other(
    make_lab: Callable[..., Lab], adapter: ScriptedAdapter, workers: Callable[[Claim], Future[str]]
) -> None:
    big, small = asleep(make_lab("grande")), asleep(make_lab("pequena"))
    with_work(big, 60)
    slow, answered = set(Channel.unscoped.filter(organization=big.organization).values_list("pk", flat=True)), Event()

    def send(outgoing: Outgoing) -> str | None:
        if outgoing.channel_id in slow:
            answered.wait(30)
        return outgoing.provider_id

    adapter.on_send = send
    try:
        for claim in lanes.claim(limit=200):
            workers(claim)
        assert until(lambda: len(adapter.sent) == 24)
        with_work(small, 1)
        queued_at = time.monotonic()
        (claim,) = lanes.claim(limit=200)
        assert workers(claim).result(30) == "sent"
        assert time.monotonic() - queued_at < 1
    finally:
        answered.set()
