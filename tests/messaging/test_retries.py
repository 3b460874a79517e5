"""From an error to what follows: the whole table."""

from __future__ import annotations

import pytest

from messaging import rules
from messaging.adapters import ChannelError, Fault, Sent
from messaging.retries import Outcome, outcome


def error(sent: Sent, fault: Fault, *, permanent: bool = False, retry_after: float | None = None) -> ChannelError:
    return ChannelError("x", sent=sent, fault=fault, permanent=permanent, retry_after=retry_after)


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("permanent", [True, False])
def test_whatever_may_have_left_is_never_repeated(fault: Fault, permanent: bool) -> None:
    found = outcome(error(Sent.MAYBE, fault, permanent=permanent), faults=0, failures=0, jitter=0)
    assert found == Outcome("unknown")


@pytest.mark.parametrize(
    ("raised", "faults", "failures", "expected"),
    [
        (error(Sent.NO, Fault.LANE), 0, 0, Outcome("not_sent", lane_wait=1)),
        (error(Sent.NO, Fault.GATEWAY), 4, 3, Outcome("not_sent", lane_wait=8)),
        (error(Sent.NO, Fault.GATEWAY), 0, 40, Outcome("not_sent", lane_wait=60)),
        (error(Sent.NO, Fault.LANE, permanent=True), 4, 0, Outcome("not_sent", lane_wait=1)),
        (error(Sent.NO, Fault.LANE, retry_after=120), 0, 0, Outcome("not_sent", lane_wait=120)),
        (error(Sent.NO, Fault.RECIPIENT), 0, 0, Outcome("not_sent", wait=10, counts=True)),
        (error(Sent.NO, Fault.RECIPIENT), 3, 9, Outcome("not_sent", wait=80, counts=True)),
        (error(Sent.NO, Fault.CONTENT, retry_after=600), 1, 0, Outcome("not_sent", wait=600, counts=True)),
        (error(Sent.NO, Fault.RECIPIENT), 4, 0, Outcome("failed", counts=True)),
        (error(Sent.NO, Fault.CONTENT, permanent=True), 0, 0, Outcome("failed", counts=True)),
    ],
)
def test_what_certainly_did_not_leave(raised: ChannelError, faults: int, failures: int, expected: Outcome) -> None:
    assert outcome(raised, faults=faults, failures=failures, jitter=0) == expected


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.99])
def test_back_off_is_jittered_and_bounded(jitter: float) -> None:
    waits = [outcome(error(Sent.NO, Fault.RECIPIENT), faults=n, failures=0, jitter=jitter).wait for n in range(4)]
    assert all(10 * 2**n <= wait <= 15 * 2**n for n, wait in enumerate(waits))
    assert all(wait <= rules.RETRY_MAX_SECONDS for wait in waits)
