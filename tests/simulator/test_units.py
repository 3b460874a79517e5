"""The parts that need no process."""

import random
from email.utils import formatdate

import pytest

from simulator import addresses, signing
from simulator.chance import Chance, Ids
from simulator.directory import Directory, Number
from simulator.options import from_arguments, parse_version
from simulator.retries import RetryPolicy, retry_after
from simulator.states import MOVES, IllegalMoveError, Lifecycle, Status
from tests.simulator import recorded


def test_the_published_vector_of_a_signature_is_met() -> None:
    body = b'{"event":"message","session":"default","engine":"WEBJS"}'
    assert signing.sign("my-secret-key", body) == (
        "208f8a55dde9e05519e898b10b89bf0d0b3b0fdf11fdbf09b6b90476301b98d8"
        "097c462b2b17a6ce93b6b47a136cf2e78a33a63f6752c2c1631777076153fa89"
    )


def test_every_recorded_delivery_carries_the_signature_we_compute() -> None:
    rows = recorded.deliveries()
    assert len(rows) > 50
    for row in rows:
        assert signing.sign(row["hmac_key"], row["raw"]) == row["headers"]["X-Webhook-Hmac"]


def test_headers_carry_no_signature_without_a_key() -> None:
    found = signing.headers(version="2026.7.1", request_id="r", timestamp_ms=5, key=None, body=b"{}")
    assert found == {
        "Content-Type": "application/json",
        "User-Agent": "WAHA/2026.7.1",
        "X-Webhook-Request-Id": "r",
        "X-Webhook-Timestamp": "5",
    }


@pytest.mark.parametrize(
    ("policy", "waits"),
    [("constant", [2, 2, 2, 2]), ("linear", [2, 4, 6, 8]), ("exponential", [2, 4, 8, 16])],
)
def test_retries_wait_by_their_policy(policy: str, waits: list[float]) -> None:
    found = RetryPolicy(policy=policy, delay_seconds=2)
    assert [found.wait(retry, jitter=0.0) for retry in range(1, 5)] == waits


def test_only_exponential_waits_jitter_by_up_to_a_fifth() -> None:
    assert RetryPolicy("exponential", 2).wait(3, jitter=1.0) == pytest.approx(9.6)
    assert RetryPolicy("constant", 2).wait(3, jitter=1.0) == 2


def test_ten_exponential_retries_of_two_seconds_take_34_minutes() -> None:
    policy = RetryPolicy("exponential", 2, attempts=10)
    assert sum(policy.wait(retry, jitter=0) for retry in range(1, 11)) / 60 == pytest.approx(34.1)


def test_missing_settings_of_retries_are_waha_s() -> None:
    assert RetryPolicy.from_config(None) == RetryPolicy("constant", 2, 15)
    assert RetryPolicy.from_config({"delaySeconds": 0}) == RetryPolicy("constant", 0, 15)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 0), ("", 0), ("7", 7), ("soon", 0), ("-3", 0), (formatdate(1_800_000_060, usegmt=True), 60)],
)
def test_retry_after_is_read_in_seconds_or_as_a_date(value: str | None, seconds: float) -> None:
    assert retry_after(value, now=1_800_000_000) == pytest.approx(seconds)


def test_a_lifecycle_keeps_its_last_three_statuses() -> None:
    lifecycle = Lifecycle()
    for at_ms, status in enumerate((Status.STARTING, Status.SCAN_QR_CODE, Status.STARTING, Status.WORKING)):
        lifecycle.move(status, at_ms=at_ms)
    assert lifecycle.as_payload("acme") == {
        "name": "acme",
        "status": "WORKING",
        "statuses": [
            {"status": "SCAN_QR_CODE", "timestamp": 1},
            {"status": "STARTING", "timestamp": 2},
            {"status": "WORKING", "timestamp": 3},
        ],
    }


@pytest.mark.parametrize("before", list(Status))
@pytest.mark.parametrize("after", list(Status))
def test_a_lifecycle_moves_only_where_waha_does(before: Status, after: Status) -> None:
    lifecycle = Lifecycle(status=before)
    if after in MOVES[before]:
        lifecycle.move(after, at_ms=1)
        assert lifecycle.status is after
    else:
        with pytest.raises(IllegalMoveError):
            lifecycle.move(after, at_ms=1)
        assert lifecycle.status is before


def test_a_failed_session_counts_as_running_and_a_stopped_one_does_not() -> None:
    assert Lifecycle(status=Status.FAILED).is_running
    assert not Lifecycle(status=Status.STOPPED).is_running


@pytest.mark.parametrize(
    ("given", "engine", "public"),
    [
        ("5511999990001", "5511999990001@s.whatsapp.net", "5511999990001@c.us"),
        ("+447700900123", "+447700900123@s.whatsapp.net", "+447700900123@c.us"),
        ("155500001111@lid", "155500001111@lid", "155500001111@lid"),
        ("120363000000000001@g.us", "120363000000000001@g.us", "120363000000000001@g.us"),
        ("447700900123@s.whatsapp.net", "447700900123@s.whatsapp.net", "447700900123@c.us"),
    ],
)
def test_chat_ids_turn_into_the_engine_s_form_and_back(given: str, engine: str, public: str) -> None:
    assert addresses.to_engine(addresses.with_suffix(given)) == engine
    assert addresses.to_public(engine) == public


def test_a_device_is_stripped_from_an_address() -> None:
    assert addresses.to_public("5511999990001:7@s.whatsapp.net") == "5511999990001@c.us"


def test_the_bare_id_is_the_third_part_of_a_full_one() -> None:
    full = addresses.full_id(from_me=True, chat_id="1@g.us", bare="3EB0", participant="2@c.us")
    assert full == "true_1@g.us_3EB0_2@c.us"
    assert addresses.bare_id(full) == addresses.bare_id("3EB0") == "3EB0"


def test_ids_have_waha_s_forms_and_do_not_repeat() -> None:
    ids = Ids()
    events = {ids.event(1_795_962_696_080) for _ in range(1000)}
    requests = {ids.request(1_795_962_696_081) for _ in range(1000)}
    messages = {ids.sent_message() for _ in range(1000)}
    assert len(events) == len(requests) == len(messages) == 1000
    assert {len(event) for event in events} == {30}
    # The time part of an event recorded in that millisecond.
    assert all(event.startswith("evt_01m8kvfwcg") for event in events)
    assert {len(request) for request in requests} == {17}
    assert all(message.startswith("3EB0") and len(message) == 22 for message in messages)


def test_chance_repeats_under_a_seed() -> None:
    one, other = Chance(7), Chance(7)
    assert [one.hits(0.5) for _ in range(50)] == [other.hits(0.5) for _ in range(50)]
    assert all(one.hits(1) for _ in range(10))
    assert not any(one.hits(0) for _ in range(10))


def test_numbers_exist_unless_told_otherwise() -> None:
    directory = Directory()
    directory.put("5511999990009", Number(exists=False))
    directory.put("5511999990001", Number(chat_id="551199990001@c.us"))
    assert directory.look_up("+5511988880001") == "5511988880001@c.us"
    assert directory.look_up("5511999990001") == "551199990001@c.us"
    assert directory.look_up("5511999990009") is None
    assert directory.look_up("garbage") is None
    assert not directory.receives("garbage@c.us")
    assert directory.receives("155500001111@lid")


@pytest.mark.parametrize(("text", "numbers"), [("2026.4.3", (2026, 4, 3)), ("2026.8", (2026, 8)), ("x", ())])
def test_versions_are_compared_by_number(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


def test_old_core_is_restricted_and_the_new_one_is_not() -> None:
    assert from_arguments(["--version", "2026.2.1"]).is_restricted
    assert not from_arguments(["--version", "2026.2.1", "--tier", "PLUS"]).is_restricted
    assert not from_arguments([]).is_restricted


def test_a_wrong_option_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        from_arguments(["--ack-delays", "soon"])
    assert "three numbers" in capsys.readouterr().err


def test_ids_are_unique_even_under_one_seed_of_random() -> None:
    random.seed(1)
    first = Ids().sent_message()
    random.seed(1)
    assert Ids().sent_message() != first
