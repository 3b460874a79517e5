"""The statuses of a session and the moves between them."""

from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    STOPPED = "STOPPED"
    STARTING = "STARTING"
    SCAN_QR_CODE = "SCAN_QR_CODE"
    WORKING = "WORKING"
    FAILED = "FAILED"


# A status may repeat where WAHA repeats it: SCAN_QR_CODE at each QR, STARTING at each try to connect.
MOVES: dict[Status, frozenset[Status]] = {
    Status.STOPPED: frozenset({Status.STARTING}),
    Status.STARTING: frozenset(Status),
    Status.SCAN_QR_CODE: frozenset({Status.SCAN_QR_CODE, Status.STARTING, Status.FAILED, Status.STOPPED}),
    Status.WORKING: frozenset({Status.STARTING, Status.FAILED, Status.STOPPED}),
    Status.FAILED: frozenset({Status.STARTING, Status.STOPPED}),
}

QR_SECONDS = (60.0, 20.0, 20.0, 20.0, 20.0, 20.0)
CONNECT_SECONDS = 0.6
RECONNECT_SECONDS = 2.0
WORKING_LAG_SECONDS = 2.0
KNOWN_NAME_LAG_SECONDS = 0.1
OFFLINE_TRIES = 60

_KEPT = 3


class IllegalMoveError(Exception):
    """A session cannot go from the one status to the other."""

    def __init__(self, before: Status, after: Status) -> None:
        super().__init__(f"{before} cannot become {after}")
        self.before = before
        self.after = after


@dataclass(slots=True)
class Lifecycle:
    """The status of one session and the last three it had, with their times in milliseconds."""

    status: Status = Status.STOPPED
    history: list[tuple[Status, int]] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        """WAHA holds an engine for it; FAILED counts, as its answers to `start` show."""
        return self.status is not Status.STOPPED

    def move(self, status: Status, *, at_ms: int) -> None:
        """Raises IllegalMoveError; a stop of what is stopped is one too."""
        if status not in MOVES[self.status]:
            raise IllegalMoveError(self.status, status)
        self.status = status
        self.history = [*self.history, (status, at_ms)][-_KEPT:]

    def as_payload(self, name: str) -> dict[str, object]:
        """The payload of `session.status`."""
        statuses = [{"status": status.value, "timestamp": at_ms} for status, at_ms in self.history]
        return {"name": name, "status": self.status.value, "statuses": statuses}
