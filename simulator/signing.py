"""Signatures and headers of a webhook; the simulator's own code, so that it proves the product's."""

import hashlib
import hmac


def sign(key: str, body: bytes) -> str:
    """Lower-case hex of HMAC-SHA512 over the raw body."""
    return hmac.digest(key.encode(), body, hashlib.sha512).hex()


def headers(*, version: str, request_id: str, timestamp_ms: int, key: str | None, body: bytes) -> dict[str, str]:
    """WAHA stamps the event's time, not the sending's, and signs neither it nor the other headers."""
    found = {
        "Content-Type": "application/json",
        "User-Agent": f"WAHA/{version}",
        "X-Webhook-Request-Id": request_id,
        "X-Webhook-Timestamp": str(timestamp_ms),
    }
    if key:
        found["X-Webhook-Hmac"] = sign(key, body)
        found["X-Webhook-Hmac-Algorithm"] = "sha512"
    return found
