"""Rules for what goes wrong."""

import time
from typing import Any

import pytest

from simulator.chance import Chance
from simulator.faults import KINDS, FaultBoard, FaultRuleError, Plan, WebhookTrouble


def board() -> FaultBoard:
    return FaultBoard(Chance(1))


def plan(faults: FaultBoard, **scope: Any) -> Plan:
    return faults.plan(**({"op": "sendText", "session": "acme", "chat_id": "1@c.us"} | scope))


def test_without_rules_a_call_goes_well() -> None:
    assert plan(board()) == Plan()


def test_a_count_limits_a_fault_to_the_next_calls() -> None:
    faults = board()
    rule = faults.add({"kind": "reset", "count": 2})
    outcomes = [plan(faults).outcome for _ in range(4)]
    assert [outcome is not None for outcome in outcomes] == [True, True, False, False]
    assert rule.as_dict()["hits"] == 2
    assert rule.as_dict()["left"] == 0


@pytest.mark.parametrize(
    ("scope", "strikes"),
    [
        ({"session": "acme"}, True),
        ({"session": "other"}, False),
        ({"chat_id": "1@c.us"}, True),
        ({"chat_id": "2@c.us"}, False),
        ({"op": "qr"}, False),
        ({"op": None}, True),
    ],
)
def test_a_fault_strikes_only_in_its_scope(scope: dict[str, Any], strikes: bool) -> None:
    faults = board()
    faults.add({"kind": "reset", **scope})
    assert (plan(faults).outcome is not None) is strikes


def test_a_share_repeats_under_its_seed() -> None:
    def drawn() -> list[bool]:
        faults = board()
        faults.add({"kind": "drop_acks", "probability": 0.4, "seed": 9})
        return [bool(plan(faults).dropped_acks) for _ in range(40)]

    first = drawn()
    assert first == drawn()
    assert 0 < sum(first) < 40


def test_faults_add_up_and_the_first_outcome_wins() -> None:
    faults = board()
    faults.add({"kind": "delay_before", "seconds": 1})
    faults.add({"kind": "delay_before", "seconds": 2})
    faults.add({"kind": "status", "status": 500, "acted": True})
    faults.add({"kind": "hang"})
    found = plan(faults)
    assert found.delay_before == 3
    assert found.outcome is not None
    assert (found.outcome.kind, found.outcome.acted) == ("status", True)


def test_acks_are_shaped_by_several_faults() -> None:
    faults = board()
    faults.add({"kind": "drop_acks", "acks": [1]})
    faults.add({"kind": "drop_acks", "acks": [3]})
    faults.add({"kind": "duplicate_acks", "times": 3})
    faults.add({"kind": "reverse_acks"})
    faults.add({"kind": "ack_error", "after": 1})
    faults.add({"kind": "late_acks", "seconds": 5})
    faults.add({"kind": "echo", "order": "late", "seconds": 4})
    found = plan(faults)
    assert found.dropped_acks == {1, 3}
    assert (found.ack_times, found.acks_reversed, found.ack_error_after, found.ack_delay) == (3, True, 1, 5)
    assert (found.echo, found.echo_seconds) == ("late", 4)


def test_webhooks_are_posted_twice_or_never_on_command() -> None:
    faults = board()
    faults.add({"kind": "webhook_duplicate", "event": "message.ack"})
    faults.add({"kind": "webhook_drop", "event": "message.any", "session": "acme"})
    assert faults.webhook_trouble(session="acme", event="message.ack") == WebhookTrouble(copies=2)
    assert faults.webhook_trouble(session="acme", event="message.any") == WebhookTrouble(copies=0)
    assert faults.webhook_trouble(session="other", event="message.any") == WebhookTrouble()


def test_webhooks_come_late_and_under_fresh_ids_on_command() -> None:
    faults = board()
    faults.add({"kind": "webhook_duplicate", "times": 3, "fresh": True})
    faults.add({"kind": "webhook_late", "seconds": 2})
    faults.add({"kind": "webhook_late", "seconds": 1})
    found = faults.webhook_trouble(session="acme", event="message")
    assert found == WebhookTrouble(copies=3, is_fresh=True, seconds=3)


def test_an_outage_strikes_every_call_and_ends_by_itself() -> None:
    faults = board()
    faults.add({"kind": "close", "op": "*", "lasts": 60})
    assert plan(faults).outcome is not None
    assert faults.plan(op="listSessions", session=None, chat_id=None).outcome is not None
    faults.rules[0].ends_at = time.monotonic() - 1
    assert plan(faults).outcome is None


def test_faults_are_lifted_one_by_one_or_all() -> None:
    faults = board()
    rules = [faults.add({"kind": "reverse_acks"}) for _ in range(3)]
    assert faults.remove(rules[0].id) == 1
    assert faults.remove(rules[0].id) == 0
    assert faults.remove() == 2
    assert plan(faults) == Plan()


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"kind": "nonsense"},
        {"kind": ["reset"]},
        {"kind": "delay_before"},
        {"kind": "reset", "secnods": 3},
        {"kind": "reset", "probability": 2},
        {"kind": "reset", "count": 0},
        {"kind": "reset", "lasts": 0},
        {"kind": "engine_error"},
        {"kind": "echo", "order": "sideways"},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(request_: dict[str, Any]) -> None:
    faults = board()
    with pytest.raises(FaultRuleError):
        faults.add(request_)
    assert faults.rules == []


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_can_be_set_and_lands_in_a_plan(kind: str) -> None:
    needed = {"seconds": 1, "status": 500, "order": "none", "message": "rate-overlimit"}
    settings = {name: needed[name] for name, default in KINDS[kind].items() if default is None}
    faults = board()
    rule = faults.add({"kind": kind, **settings})
    plan(faults)
    faults.webhook_trouble(session="acme", event="message.ack")
    assert rule.hits == 1
