"""The gate: nothing leaves unless everything allows it, and whatever is held says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from audience.models import Contact
from messaging import db, delivery, gate, lanes, streams
from messaging.gate import Verdict
from messaging.models import Message, Receipt
from tests.messaging.conftest import Lab

pytestmark = pytest.mark.django_db

PRIORITY = Message.Priority


def ask(lab: Lab, provider_id: str | None = "3EB0AA") -> gate.Answer:
    return gate.ask(lab.claim(), provider_id)


def test_go_records_that_the_message_is_leaving(lab: Lab) -> None:
    message = lab.queue()
    claim = lab.claim()
    answer = gate.ask(claim, "3EB0AA")
    message.refresh_from_db()
    assert answer == gate.Answer(Verdict.GO, "", None, 1)
    assert (message.status, message.attempt, message.provider_id) == ("sending", 1, "3EB0AA")
    assert message.sending_at is not None
    receipt = Receipt.objects.get()
    assert (receipt.provider_id, receipt.message_id, receipt.attempt) == ("3EB0AA", message.pk, 1)
    lane = lab.lane()
    assert lane["used"] == 1
    assert lane["busy_message"] == message.pk
    assert 1.2 <= (lane["any_at"] - message.sending_at).total_seconds() <= 2.11


def test_a_claim_passes_once(lab: Lab) -> None:
    lab.queue()
    claim = lab.claim()
    assert gate.ask(claim, "3EB0AA").verdict is Verdict.GO
    assert gate.ask(claim, "3EB0BB").verdict is Verdict.STALE
    assert lab.lane()["busy_message"] == claim.message_id


def test_an_older_lease_is_stale(lab: Lab) -> None:
    lab.queue()
    old = lab.claim()
    lab.lane(busy_until="clock_timestamp() - interval '1 second'")
    assert lanes.free_overdue() == 1
    lab.rested()
    new = lab.claim()
    assert new.lease == old.lease + 1
    assert gate.ask(old, "3EB0AA").verdict is Verdict.STALE
    assert gate.ask(new, "3EB0BB").verdict is Verdict.GO


@pytest.mark.parametrize(
    ("fields", "code"), [({"is_blocked": True}, "contact_blocked"), ({"is_on_hold": True}, "contact_on_hold")]
)
def test_an_automatic_message_to_who_may_get_none_is_skipped(lab: Lab, fields: Any, code: str) -> None:
    contact = Contact.objects.create(organization=lab.organization, identity="5511999990001", **fields)
    message = lab.queue(contact_id=contact.pk)
    assert ask(lab).verdict is Verdict.NEVER
    message.refresh_from_db()
    assert (message.status, message.error_code) == ("skipped", code)
    assert lab.lane()["busy_message"] is None


def test_a_human_may_still_answer_who_is_blocked(lab: Lab) -> None:
    contact = Contact.objects.create(organization=lab.organization, identity="5511999990001", is_blocked=True)
    lab.queue(contact_id=contact.pk, priority=PRIORITY.HUMAN)
    assert ask(lab).verdict is Verdict.GO


def test_past_its_validity_a_message_expires(lab: Lab) -> None:
    message = lab.queue(expires_at=db.database_now())
    assert ask(lab).code == "expired"
    message.refresh_from_db()
    assert message.status == "expired"


def test_a_paused_stream_waits_and_its_lane_goes_on(lab: Lab) -> None:
    stream = lab.stream()
    (first,) = lab.feed(stream, 1)
    claim = lab.claim()
    streams.pause(streams.lock(stream.pk))
    answer = gate.ask(claim, "3EB0AA")
    first.refresh_from_db()
    assert (answer.verdict, answer.code) == (Verdict.STREAM_LATER, "broadcast_paused")
    assert (first.status, first.waiting_code) == ("queued", "broadcast_paused")
    assert lanes.claim(limit=10) == []
    single = lab.queue()
    assert lab.claim().message_id == single.pk


def test_a_disconnected_lane_sleeps_until_an_event(lab: Lab) -> None:
    message = lab.queue()
    claim = lab.claim()
    lanes.set_connected(lab.channel.pk, connected=False)
    assert gate.ask(claim, None).code == "channel_disconnected"
    assert lab.lane()["next_at"] is None
    lanes.set_connected(lab.channel.pk, connected=True)
    assert lab.claim().message_id == message.pk


def test_a_hold_names_itself(lab: Lab) -> None:
    message = lab.queue()
    claim = lab.claim()
    lanes.set_hold(lab.channel.pk, "phone_changed", on=True)
    assert gate.ask(claim, None).code == "phone_changed"
    message.refresh_from_db()
    assert message.waiting_code == "phone_changed"


def test_two_messages_of_a_lane_keep_their_gap(lab: Lab) -> None:
    lab.queue("um")
    second = lab.queue("dois")
    assert ask(lab).verdict is Verdict.GO
    lab.lane(busy_message="NULL", next_at="clock_timestamp()")
    # The claim looks at the pace too; whoever claims all the same is told by the gate.
    assert lanes.claim(limit=10) == []
    db.rows("UPDATE messages SET status = 'claimed', lease = 9 WHERE id = %s", [second.pk])
    lab.lane(busy_message=f"'{second.pk}'", lease="9")
    answer = gate.ask(lanes.Claim(second.pk, lab.channel.pk, 9, lab.channel.organization_id), None)
    assert (answer.verdict, answer.code) == (Verdict.LANE_LATER, "pace")
    assert answer.until == lab.lane()["any_at"] == lab.lane()["next_at"]


def test_broadcasts_have_a_gap_of_their_own(lab: Lab) -> None:
    stream = lab.stream()
    first, _second = lab.feed(stream, 2)
    assert ask(lab).verdict is Verdict.GO
    lane = lab.lane(busy_message="NULL", any_at="clock_timestamp() - interval '1 s'", next_at="clock_timestamp()")
    first.refresh_from_db()
    assert first.sending_at is not None
    assert 5.0 <= (lane["broadcast_at"] - first.sending_at).total_seconds() <= 7.51
    assert lanes.claim(limit=10) == []
    assert lab.lane()["next_at"] == lane["broadcast_at"]
    single = lab.queue()
    assert lab.claim().message_id == single.pk


def test_outside_the_window_the_automatic_waits_and_the_human_does_not(lab: Lab) -> None:
    automatic = lab.queue()
    tomorrow = "clock_timestamp() + interval '9 hours'"
    lab.lane(open_from=tomorrow, open_until="clock_timestamp() + interval '20 hours'")
    answer = ask(lab)
    assert (answer.verdict, answer.code) == (Verdict.LANE_LATER, "outside_window")
    automatic.refresh_from_db()
    assert automatic.waiting_until == answer.until
    human = lab.queue(priority=PRIORITY.HUMAN)
    claim = lab.claim()
    assert claim.message_id == human.pk
    assert gate.ask(claim, None).verdict is Verdict.GO


def test_what_cannot_leave_before_closing_has_the_policy_asked(lab: Lab) -> None:
    lab.queue()
    lab.lane(open_until="clock_timestamp() + interval '10 seconds'")
    # All day open by its rules: the policy gives later figures and the gate lets go.
    assert ask(lab).verdict is Verdict.GO


@pytest.mark.parametrize(("priority", "goes"), [(PRIORITY.HUMAN, True), (PRIORITY.AUTOMATIC, False)])
def test_the_soft_cap_stops_the_automatic_only(lab: Lab, priority: int, goes: bool) -> None:
    message = lab.queue(priority=priority)
    lab.lane(used="cap_soft")
    answer = ask(lab)
    assert (answer.verdict is Verdict.GO) is goes
    if not goes:
        message.refresh_from_db()
        assert (message.waiting_code, message.waiting_until) == ("daily_limit", lab.lane()["day_ends_at"])


def test_the_hard_cap_stops_everybody(lab: Lab) -> None:
    lab.queue(priority=PRIORITY.HUMAN)
    lab.lane(used="cap_hard")
    assert ask(lab).code == "daily_limit"


def test_a_new_day_counts_anew(lab: Lab) -> None:
    lab.queue()
    lab.lane(used="cap_hard", day_ends_at="clock_timestamp()", day_starts_at="clock_timestamp() - interval '1 day'")
    assert ask(lab).verdict is Verdict.GO
    assert lab.lane()["used"] == 1


def test_a_canceled_claim_frees_its_lane_and_ends(lab: Lab) -> None:
    stream = lab.stream()
    (message,) = lab.feed(stream, 1)
    claim = lab.claim()
    assert streams.cancel(streams.lock(stream.pk)) == 1
    assert delivery.deliver(claim) == Verdict.STALE
    message.refresh_from_db()
    assert message.status == "canceled"
    assert lab.lane()["busy_message"] is None
    assert lab.adapter.sent == []


def test_ten_gaps_of_a_deck_have_the_mean_jitter(lab: Lab) -> None:
    gaps = []
    for _ in range(20):
        lab.queue()
        lab.rested()
        assert ask(lab).verdict is Verdict.GO
        gaps.append(lab.lane(busy_message="NULL")["gap_now"])
    assert len({round(gap, 3) for gap in gaps}) > 10
    for deck in (gaps[:10], gaps[10:]):
        assert sum(deck) / 10 == pytest.approx(1.2 + 0.45, abs=0.001)
        assert all(1.2 <= gap <= 2.1 for gap in deck)


def test_a_hundred_messages_take_at_least_160_seconds(lab: Lab) -> None:
    decks = [db.row("SELECT engine_deck()")[0] for _ in range(50)]
    # The worst ninety-nine gaps: ten decks, less the largest card of one.
    worst = min(sum(deck) - max(deck) for deck in decks) + 9 * min(sum(deck) for deck in decks)
    assert 99 * 1.2 + worst * 0.9 >= 160


def test_what_is_committed_survives_a_crash_of_the_server(lab: Lab) -> None:
    # Whatever the server's own default is: else a message that has left could be forgotten and sent again.
    assert db.row("SHOW synchronous_commit") == ("on",)


def test_a_broadcasts_message_to_who_was_erased_is_skipped(lab: Lab) -> None:
    (message,) = lab.feed(lab.stream(), 1)
    Contact.objects.of(lab.organization).delete()
    assert ask(lab).code == "contact_erased"
    message.refresh_from_db()
    assert (message.status, message.contact_id) == ("skipped", None)


def test_a_zone_that_moves_gives_nothing_back(lab: Lab) -> None:
    lab.lane(used="300")
    for zone in ("Asia/Tokyo", "Europe/Lisbon", "America/Los_Angeles", "Pacific/Kiritimati"):
        lab.organization.time_zone = zone
        lab.organization.save()
        lanes.refresh_figures(lab.channel.pk)
        assert lab.lane()["used"] == 300


def test_what_is_late_after_the_gate_does_not_leave(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    message = lab.queue()
    claim = lab.claim()
    ask_now = gate.ask

    def stopped_meanwhile(claim: lanes.Claim, provider_id: str | None) -> gate.Answer:
        answer = ask_now(claim, provider_id)
        # As if the process had been stopped for three seconds while the answer was on its way.
        return replace(answer, asked_at=answer.asked_at - 3)

    monkeypatch.setattr(gate, "ask", stopped_meanwhile)
    assert delivery.deliver(claim) == "not_sent"
    message.refresh_from_db()
    assert (message.status, message.error_code, message.faults) == ("queued", "too_late", 0)
    assert lab.adapter.sent == []
    assert lab.lane()["used"] == 0
