"""When a webhook is posted again."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

DEFAULT_DELAY_SECONDS = 2.0
DEFAULT_ATTEMPTS = 15
POLICIES = ("linear", "exponential", "constant")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` retries follow the first request, so N attempts are N + 1 requests."""

    policy: str = "constant"
    delay_seconds: float = DEFAULT_DELAY_SECONDS
    attempts: int = DEFAULT_ATTEMPTS

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | None) -> "RetryPolicy":
        found = config or {}
        return cls(
            policy=found.get("policy") or "constant",
            delay_seconds=float(found.get("delaySeconds", DEFAULT_DELAY_SECONDS)),
            attempts=int(found.get("attempts", DEFAULT_ATTEMPTS)),
        )

    def wait(self, retry: int, *, jitter: float) -> float:
        """Seconds before retry number `retry` (1 is the first); `jitter` in 0..1 adds up to a fifth."""
        if self.policy == "linear":
            return self.delay_seconds * retry
        if self.policy == "exponential":
            doubled = self.delay_seconds * 2 ** (retry - 1)
            return float(doubled * (1 + 0.2 * jitter))
        return self.delay_seconds


def retry_after(value: str | None, *, now: float) -> float:
    """Seconds that a `Retry-After` header (seconds or a date) asks for; 0 when absent or unreadable."""
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return 0.0
