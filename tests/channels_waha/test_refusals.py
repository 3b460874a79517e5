"""What each answer of WAHA proves, in one table; and every answer that was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from channels_waha import refusals
from channels_waha.client import Answer
from messaging.adapters import ChannelError, Fault, Sent
from tests.channels_waha import recorded

WRONG_STATE = {
    "error": "Session status is not as expected. Try again later",
    "status": "STARTING",
    "expected": ["WORKING"],
}
UNKNOWN = {"error": 'Session "loja_1" does not exist', "session": "loja_1"}
CORE_ONLY = {
    "message": "WAHA Core support only 'default' session. You tried to access 'loja_1' session",
    "statusCode": 422,
}
LOCKED = {"statusCode": 500, "exception": {"message": "async-lock timed out in queue loja_1"}}
CLOSED = {"statusCode": 500, "exception": {"message": "Connection Closed"}, "request": {"body": {"text": "segredo"}}}


@pytest.mark.parametrize(
    ("status", "body", "code", "sent", "fault", "permanent"),
    [
        (400, {}, "waha_rejected", Sent.NO, Fault.CONTENT, True),
        (401, {}, "waha_unauthorized", Sent.NO, Fault.GATEWAY, False),
        (403, {}, "waha_forbidden", Sent.NO, Fault.GATEWAY, False),
        (404, {}, "waha_not_found", Sent.NO, Fault.LANE, False),
        (413, {}, "waha_rejected", Sent.NO, Fault.CONTENT, True),
        (422, WRONG_STATE, "session_not_working", Sent.NO, Fault.LANE, False),
        (422, UNKNOWN, "session_unknown", Sent.NO, Fault.LANE, False),
        (422, CORE_ONLY, "session_unsupported", Sent.NO, Fault.LANE, False),
        (422, {"message": "no"}, "waha_rejected", Sent.NO, Fault.CONTENT, True),
        (429, {}, "waha_rate_limited", Sent.NO, Fault.GATEWAY, False),
        (301, {}, "waha_redirected", Sent.NO, Fault.GATEWAY, False),
        (302, {}, "waha_unexpected_answer", Sent.MAYBE, Fault.GATEWAY, False),
        (408, {}, "waha_unexpected_answer", Sent.MAYBE, Fault.GATEWAY, False),
        (500, LOCKED, "session_busy", Sent.NO, Fault.LANE, False),
        (500, CLOSED, "waha_error", Sent.MAYBE, Fault.GATEWAY, False),
        (500, [], "waha_error", Sent.MAYBE, Fault.GATEWAY, False),
        (501, {}, "waha_not_supported", Sent.NO, Fault.CONTENT, True),
        (502, {}, "waha_error", Sent.MAYBE, Fault.GATEWAY, False),
        (503, {}, "waha_error", Sent.MAYBE, Fault.GATEWAY, False),
        (504, {}, "waha_error", Sent.MAYBE, Fault.GATEWAY, False),
    ],
)
def test_an_answer_proves(status: int, body: Any, code: str, sent: Sent, fault: Fault, permanent: bool) -> None:
    error = refusals.refusal(Answer(status, json.dumps(body).encode(), retry_after=3.0))
    assert isinstance(error, ChannelError)
    assert (error.code, error.sent, error.fault, error.permanent) == (code, sent, fault, permanent)
    assert error.retry_after == 3.0
    assert "segredo" not in f"{error} {error.detail}"


def test_the_state_of_the_session_is_told_where_it_is_a_word() -> None:
    told = refusals.refusal(Answer(422, json.dumps(WRONG_STATE).encode()))
    odd = refusals.refusal(Answer(422, json.dumps({**WRONG_STATE, "status": "segredo de Ana"}).encode()))
    assert told is not None
    assert told.detail == "the session is STARTING"
    assert odd is not None
    assert odd.detail == "WAHA answered 422"


@pytest.mark.parametrize("exchange", recorded.exchanges("/api/sendText"), ids=lambda exchange: exchange.name)
def test_every_recorded_send_is_classified(exchange: recorded.Exchange) -> None:
    error = refusals.refusal(Answer(exchange.status, exchange.body))
    if exchange.status == 201:
        assert error is None
    elif exchange.status == 500:
        assert error is not None
        assert error.sent is Sent.MAYBE
    else:
        assert error is not None
        assert (error.sent, error.fault in {Fault.LANE, Fault.CONTENT}) == (Sent.NO, True)
