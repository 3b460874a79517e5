"""What commits while a lane's row is held must be seen by the gate that waited for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction

from audience.models import Contact
from messaging import db, delivery, lanes, streams
from messaging.adapters import Outgoing
from messaging.models import Message, Stream
from permissions import isolation
from permissions.isolation import Reach, Sweep
from permissions.postgres.scoping import role_of
from tests.messaging.conftest import Lab
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def other_connection() -> psycopg.Connection:
    """A transaction beside the test's own."""
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    other = psycopg.connect(**parameters)
    other.execute("SELECT set_config('role', %s, false)", [role_of(Reach.ALL)])
    other.commit()
    return other


def in_a_thread_of_its_own(work: Callable[[], object]) -> None:
    """Run it and give its connection back."""
    try:
        with isolation.across_tenants(Sweep.COMMAND, "test"):
            work()
    finally:
        connection.close()


def deliver_while_held(lab: Lab, claim: lanes.Claim, meanwhile: Callable[[], None]) -> str:
    """Hold the lane's row, have a worker wait for it, commit ``meanwhile``, let go; the worker's word."""
    words: list[str] = []

    def work() -> None:
        words.append(delivery.deliver(claim))

    with other_connection() as holder:
        holder.execute("SELECT 1 FROM lanes WHERE channel_id = %s FOR UPDATE", [lab.channel.pk])
        worker = threading.Thread(target=in_a_thread_of_its_own, args=[work])
        worker.start()
        until(
            lambda: bool(db.rows("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype IN ('tuple', 'transactionid')"))
        )
        meanwhile()
    worker.join(timeout=10)
    return words[0]


def test_an_opt_out_committed_while_the_gate_waits_is_obeyed(lab: Lab) -> None:
    contact = Contact.objects.create(organization=lab.organization, identity="5511999990001")
    message = lab.queue(contact_id=contact.pk)

    def opt_out() -> None:
        Contact.objects.of(lab.organization).update(is_blocked=True)

    assert deliver_while_held(lab, lab.claim(), opt_out) == "never"
    message.refresh_from_db()
    assert (message.status, message.error_code) == ("skipped", "contact_blocked")
    assert lab.adapter.sent == []


@pytest.mark.parametrize(("move", "status"), [(streams.pause, "queued"), (streams.cancel, "canceled")])
def test_a_pause_or_cancel_committed_while_the_gate_waits_is_obeyed(
    lab: Lab, move: Callable[[Stream], object], status: str
) -> None:
    stream = lab.stream()
    (message,) = lab.feed(stream, 1)

    def act() -> None:
        with transaction.atomic():
            move(streams.lock(stream.pk))

    deliver_while_held(lab, lab.claim(), act)
    message.refresh_from_db()
    assert message.status == status
    assert lab.adapter.sent == []
    assert lab.lane()["busy_message"] is None


def test_a_message_queued_while_the_dispatcher_claims_is_not_overlooked(lab: Lab) -> None:
    lab.lane(next_at="clock_timestamp()")
    with other_connection() as dispatcher:
        assert dispatcher.execute("SELECT * FROM engine_claim(10, 20)").fetchall() == []
        queued = threading.Thread(target=in_a_thread_of_its_own, args=[lab.queue])
        queued.start()
        until(lambda: bool(db.rows("SELECT 1 FROM pg_locks WHERE NOT granted")))
    queued.join(timeout=10)
    assert lab.lane()["next_at"] is not None
    assert len(lanes.claim(limit=10)) == 1


def test_two_dispatchers_never_take_one_lane_twice(lab: Lab) -> None:
    lab.queue("um")
    lab.queue("dois")
    with other_connection() as first:
        assert len(first.execute("SELECT * FROM engine_claim(10, 20)").fetchall()) == 1
        assert lanes.claim(limit=10) == []
    assert lanes.claim(limit=10) == []
    assert Message.objects.of(lab.organization).filter(status="claimed").count() == 1


def test_many_workers_on_one_claim_send_once(lab: Lab) -> None:
    """B127: the pace and the claim are of the row, whatever workers there are."""
    lab.queue()
    claim = lab.claim()
    barrier = threading.Barrier(6)

    def work() -> None:
        barrier.wait()
        delivery.deliver(claim)

    threads = [threading.Thread(target=in_a_thread_of_its_own, args=[work]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(lab.adapter.sent) == 1
    assert lab.lane()["busy_message"] is None


def test_a_database_that_drops_the_settle_is_asked_again(lab: Lab) -> None:
    message = lab.queue()
    claim = lab.claim()

    def send_and_lose_the_database(_outgoing: Outgoing) -> str | None:
        # As the login: the role that serves may end nobody's connection.
        with isolation.nowhere(), connection.cursor() as cursor:
            cursor.execute("SET ROLE none")
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )
            cursor.execute(f"SET ROLE {settings.DATABASE_ROLE}")
        connection.close()
        return "3EB0FF"

    lab.adapter.on_send = send_and_lose_the_database
    assert delivery.deliver(claim) == "sent"
    message.refresh_from_db()
    assert (message.status, message.provider_id) == ("sent", "3EB0FF")
    assert len(lab.adapter.sent) == 1
