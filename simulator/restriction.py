"""An account that WhatsApp has restricted: what it may still do, and how the rest fails."""

import datetime
from dataclasses import dataclass
from typing import Any

CODE = "463"
HOWS = ("answer", "ack")


@dataclass(frozen=True, slots=True)
class Restriction:
    """`until` in epoch seconds, None without an end. Answers to who wrote first may pass.

    `how` is "answer" (a 500 at once), "ack" (201, then -1), or None for the engine's own way.
    """

    enforcement: str = "DEFAULT"
    until: float | None = None
    replies_pass: bool = True
    how: str | None = None

    def is_active(self, now: float) -> bool:
        return self.until is None or now < self.until

    def as_timelock(self, now: float) -> dict[str, Any]:
        """The body of `GET /api/{session}/timelock`."""
        return {
            "isActive": self.is_active(now),
            "enforcementType": self.enforcement,
            "timeEnforcementEnds": None if self.until is None else int(self.until),
        }

    def as_ack_error(self) -> dict[str, Any]:
        """`error` of an ack of -1, as newer servers tell it."""
        return {
            "code": CODE,
            "blocked": True,
            "reason": "account_restricted",
            "until": None if self.until is None else _iso(self.until),
            "enforcementType": self.enforcement,
        }


NO_TIMELOCK = {"isActive": False, "enforcementType": "DEFAULT", "timeEnforcementEnds": None}
NO_CAPPING: dict[str, Any] = {
    "cappingStatus": "NONE",
    "totalQuota": -1,
    "usedQuota": 0,
    "cycleStart": None,
    "cycleEnd": None,
    "mvStatus": None,
    "oteStatus": None,
}


def _iso(at: float) -> str:
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
