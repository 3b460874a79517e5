"""The gate: asked right before a message leaves, and obeyed."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from messaging import db, lanes, streams
from messaging.lanes import Claim
from messaging.verdicts import Verdict

__all__ = ["Answer", "Verdict", "ask", "busy_seconds", "judge"]

log = logging.getLogger(__name__)

# What the lease outlives a send and its settle by: a margin for a slow commit.
MARGIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict, the code of the rule that binds, until when, and the attempt that ``go`` has begun.

    ``asked_at``: monotonic, from before the question: whatever delays the answer counts as delay after it.
    """

    verdict: Verdict
    code: str
    until: datetime | None
    attempt: int
    asked_at: float = field(default=0.0, compare=False)


def busy_seconds() -> float:
    """How long a lane stays busy with a message past its gate: longer than any send and its settle."""
    return float(settings.SEND_DEADLINE_SECONDS + settings.SETTLE_SECONDS) + MARGIN_SECONDS


def judge(claim: Claim) -> Verdict:
    """The verdict as it would be now; changes nothing. For what is slow and comes before the gate."""
    ((verdict,),) = db.engine(
        "SELECT verdict FROM engine_judge(%s, %s, %s, %s, clock_timestamp())",
        [claim.message_id, claim.channel_id, claim.lease, settings.SEND_DEADLINE_SECONDS],
    )
    return Verdict(verdict)


def ask(claim: Claim, provider_id: str | None) -> Answer:
    """Pass the gate, or be told why not; either is committed when this returns.

    Where the lane's figures are out of date the policy writes new ones and the gate judges once more.
    """
    answer = _ask(claim, provider_id, figures_fresh=False)
    if answer.verdict is Verdict.FIGURES_STALE:
        streams.refresh_hours_of(claim.message_id)
        lanes.refresh_figures(claim.channel_id)
        answer = _ask(claim, provider_id, figures_fresh=True)
        if answer.code == "figures_stale":
            log.error("figures of lane %s are stale right after the policy wrote them", claim.channel_id)
    return answer


def _ask(claim: Claim, provider_id: str | None, *, figures_fresh: bool) -> Answer:
    asked_at = time.monotonic()
    ((verdict, code, until, attempt),) = db.engine(
        "SELECT verdict, code, until_at, attempt FROM engine_gate(%s, %s, %s, %s, %s, %s, %s)",
        [
            claim.message_id,
            claim.channel_id,
            claim.lease,
            provider_id,
            settings.SEND_DEADLINE_SECONDS,
            busy_seconds(),
            figures_fresh,
        ],
    )
    return Answer(Verdict(verdict), code, until, attempt or 0, asked_at)
