"""``manage.py verify_broadcast``: a clean broadcast passes, and each kind of corrupt row is named."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from broadcasts import feed, services
from broadcasts import proof as broadcast_proof
from broadcasts.models import Broadcast, Recipient
from messaging import db, gate, lanes
from messaging import proof as engine_proof
from permissions import ids
from permissions.ids import new_id
from tests import factories
from tests.broadcasts.conftest import Shop

pytestmark = pytest.mark.django_db

SENT = "SELECT engine_settle(%s, %s, %s, %s, 'sent', %s, '', '', 0, 0, false, 9)"
NOT_SENT = "SELECT engine_settle(%s, %s, %s, %s, 'not_sent', NULL, 'busy', '', 0, 0, false, 9)"


def attempt(shop: Shop, settle: str, *, number: int = 1) -> None:
    """One message claimed, through its gate, and settled, as by a worker; so many times over."""
    for _time in range(number):
        db.rows("UPDATE lanes SET any_at = 'epoch', broadcast_at = 'epoch', next_at = 'epoch'")
        (claim,) = lanes.claim(limit=1)
        provider_id = f"3EB0{new_id().hex[-18:].upper()}"
        answer = gate.ask(claim, provider_id)
        assert answer.verdict == "go"
        values = [claim.message_id, claim.channel_id, claim.lease, answer.attempt]
        db.engine(settle, [*values, provider_id] if settle is SENT else values)


def verify(*arguments: str, **options: bool) -> tuple[str, str]:
    """What it said, and what it held to be broken: nothing where it ended well."""
    out, err = StringIO(), StringIO()
    failed = False
    try:
        call_command("verify_broadcast", *arguments, stdout=out, stderr=err, **options)
    except CommandError:
        failed = True
    assert failed == bool(err.getvalue())
    return out.getvalue(), err.getvalue()


@pytest.fixture
def broadcast(shop: Shop) -> Broadcast:
    """Seven people: the first one's message left at its second attempt, five at their first, one waits."""
    shop.add_people(7)
    shop.add("1")
    made = shop.launched()
    feed.run(now=timezone.now())
    attempt(shop, NOT_SENT)
    attempt(shop, SENT, number=6)
    # Each attempt in its own second, as the pace has it.
    db.rows("UPDATE messages SET sending_at = clock_timestamp() WHERE status = 'sent'")
    return made


def test_a_clean_broadcast_passes_while_it_runs(broadcast: Broadcast) -> None:
    for arguments in ([ids.encode(ids.BROADCAST, broadcast.pk)], [broadcast.public_id], ["--all"]):
        out, breaches = verify(*arguments)
        assert breaches == ""
        assert "sending\n" in out
        assert "not fed: 1 (1 excluded)" in out
        assert "messages: 7 (1 queued, 6 sent)" in out
        assert out.endswith("no breach\n")


def test_and_when_it_is_over(shop: Shop, broadcast: Broadcast) -> None:
    attempt(shop, SENT)
    services.complete_finished(now=timezone.now())
    out, breaches = verify(broadcast.public_id)
    assert (breaches, shop.fresh(broadcast).status) == ("", "completed")
    assert "messages: 7 (7 sent)" in out


def test_each_person_is_shown_with_message_and_attempts(shop: Shop, broadcast: Broadcast) -> None:
    out, _breaches = verify(broadcast.public_id, verbose=True)
    lines = [line for line in out.splitlines() if "rcp_" in line]
    assert len(lines) == 8
    first = shop.recipients(broadcast)[0]
    assert ids.encode(ids.MESSAGE, first.message_id) in lines[0]
    assert "2 attempts (1: busy sent=no)" in lines[0]
    assert "excluded invalid_phone" in lines[-1]


def test_nobody_of_that_name_is_an_error() -> None:
    with pytest.raises(CommandError, match="bc_x"):
        call_command("verify_broadcast", "bc_x")


# code → what breaks it, on the row of the first message (m), recipient (r), broadcast (b), stream (s) or lane (l),
# and whose id must be named. The first message was sent at its second attempt.
MESSAGE = {
    "attempt_undecided": "UPDATE messages SET history = '[]' WHERE id = %(m)s",
    "ended_with_an_attempt_open": "UPDATE messages SET status = 'canceled', provider_id = NULL WHERE id = %(m)s",
    "history_out_of_order": "UPDATE messages SET history = history || history WHERE id = %(m)s",
    "left_without_an_attempt": "UPDATE messages SET attempt = 0, history = '[]', sending_at = NULL WHERE id = %(m)s",
    "sent_without_a_time": "UPDATE messages SET sent_at = NULL WHERE id = %(m)s",
    "claimed_without_its_lane": "UPDATE messages SET status = 'claimed' WHERE id = %(m)s",
    "sending_forgotten": "UPDATE messages SET status = 'sending', sending_at = 'epoch' WHERE id = %(m)s",
    "queued_after_its_end": "UPDATE messages SET status = 'queued', updated_at = 'epoch' WHERE id = %(m)s;"
    " UPDATE streams SET state = 'canceled' WHERE id = %(s)s",
    "left_after_its_end": "UPDATE streams SET expires_at = now() - interval '1 day' WHERE id = %(s)s",
    "another_organization": "UPDATE messages SET organization_id = %(other)s WHERE id = %(m)s",
    "person_written_to_twice": "UPDATE messages SET contact_id = (SELECT contact_id FROM messages WHERE id = %(m2)s)"
    " WHERE id = %(m)s",
    "receipt_ahead": "UPDATE receipts SET rank = 5 WHERE message_id = %(m)s",
    "receipt_missing": "UPDATE receipts SET message_id = NULL WHERE message_id = %(m)s",
    "receipt_of_no_attempt": "UPDATE receipts SET attempt = 7 WHERE message_id = %(m)s",
    "sent_again_after_it_had_left": "UPDATE receipts SET rank = 3 WHERE message_id = %(m)s",
    "left_twice": "UPDATE receipts SET message_id = %(m)s, attempt = 1 WHERE rank = 3",
}
LANE = {
    "busy_with_no_message": "UPDATE lanes SET busy_message = %(b)s, busy_until = now() WHERE channel_id = %(l)s",
    "busy_without_an_end": "UPDATE lanes SET busy_message = %(m)s, busy_until = NULL WHERE channel_id = %(l)s",
    "lease_over_and_not_freed": "UPDATE lanes SET busy_message = %(m)s, busy_until = 'epoch' WHERE channel_id = %(l)s",
    "used_below_what_left": "UPDATE lanes SET used = 5 WHERE channel_id = %(l)s",
    "used_above_what_left": "UPDATE lanes SET used = 9 WHERE channel_id = %(l)s",
    "asleep_over_work": "UPDATE lanes SET next_at = NULL WHERE channel_id = %(l)s;"
    " UPDATE messages SET updated_at = 'epoch' WHERE status = 'queued'",
}
RECIPIENT = {
    "fed_without_a_message": "UPDATE broadcast_recipients SET message_id = uuid7() WHERE id = %(r)s",
    "message_of_somebody_not_fed": "UPDATE broadcast_recipients SET state = 'pending' WHERE id = %(r)s",
    "message_in_another_place": "UPDATE messages SET stream_id = NULL WHERE id = %(m)s",
    "left_out_without_a_reason": "UPDATE broadcast_recipients SET state = 'skipped' WHERE id = %(r)s",
    "unfinished_at_the_end": "UPDATE broadcast_recipients SET state = 'pending' WHERE id = %(r)s;"
    " UPDATE broadcasts SET status = 'canceled' WHERE id = %(b)s",
}
BROADCAST = {
    "person_frozen_twice": "SET LOCAL ROLE none; DROP INDEX recipient_person_once;"
    " UPDATE broadcast_recipients SET person_key = 'one'",
    "stream_disagrees": "UPDATE streams SET state = 'paused' WHERE id = %(s)s",
    "end_without_its_time": "UPDATE broadcasts SET finished_at = now() WHERE id = %(b)s",
    "counters_disagree": "UPDATE broadcast_recipients SET message_id = uuid7() WHERE id = %(r)s",
}
# A message's own row is named where nobody stands for it.
NOBODY = {"message_of_nobody": "UPDATE broadcast_recipients SET message_id = uuid7() WHERE id = %(r)s"}
KINDS = {
    **{code: (ids.MESSAGE, "m", breaking) for code, breaking in (MESSAGE | NOBODY).items()},
    **{code: (ids.CHANNEL, "l", breaking) for code, breaking in LANE.items()},
    **{code: (ids.RECIPIENT, "r", breaking) for code, breaking in RECIPIENT.items()},
    **{code: (ids.BROADCAST, "b", breaking) for code, breaking in BROADCAST.items()},
}


def test_each_kind_of_breach_is_tried_below() -> None:
    assert set(KINDS) == {*engine_proof.CODES, *broadcast_proof.CODES}


@pytest.mark.parametrize("code", KINDS)
@pytest.mark.parametrize("of_all", [False, True], ids=["one", "all"])
def test_a_corrupt_row_is_named(shop: Shop, broadcast: Broadcast, code: str, of_all: bool) -> None:
    prefix, row, breaking = KINDS[code]
    first, second = shop.recipients(broadcast)[0], shop.recipients(broadcast)[1]
    named = {"m": first.message_id, "m2": second.message_id, "r": first.pk, "b": broadcast.pk}
    named |= {"s": broadcast.stream_id, "l": shop.channel.pk, "other": factories.OrganizationFactory.create().pk}
    with connection.cursor() as cursor:
        for statement in breaking.split(";"):
            cursor.execute(statement, named)
    _out, breaches = verify("--all" if of_all else broadcast.public_id)
    assert f"BREACH {ids.encode(prefix, named[row])}: {code}" in breaches


def test_many_breaches_are_counted_and_the_first_named(shop: Shop, broadcast: Broadcast) -> None:
    Recipient.objects.of(shop.organization).update(state="skipped", code="")
    with pytest.raises(CommandError, match=r"\d+ breaches"):
        call_command("verify_broadcast", "--all", stdout=StringIO(), stderr=StringIO())
