"""What WAHA's answers say of a request: done, certainly not done, or nobody knows. One table."""

from __future__ import annotations

import re
from typing import Any

from channels_waha.client import Answer
from messaging.adapters import ChannelError, Fault, Sent

_STATUS_WORD = re.compile(r"[A-Z_]{1,40}")

# Every row certainly did not send. What stands in no row is in doubt.
_UNSENT: dict[int, tuple[str, Fault, bool]] = {
    301: ("waha_redirected", Fault.GATEWAY, False),
    307: ("waha_redirected", Fault.GATEWAY, False),
    308: ("waha_redirected", Fault.GATEWAY, False),
    400: ("waha_rejected", Fault.CONTENT, True),
    401: ("waha_unauthorized", Fault.GATEWAY, False),
    403: ("waha_forbidden", Fault.GATEWAY, False),
    404: ("waha_not_found", Fault.LANE, False),
    405: ("waha_not_found", Fault.GATEWAY, False),
    413: ("waha_rejected", Fault.CONTENT, True),
    415: ("waha_rejected", Fault.CONTENT, True),
    429: ("waha_rate_limited", Fault.GATEWAY, False),
    501: ("waha_not_supported", Fault.CONTENT, True),
}


def refusal(answer: Answer) -> ChannelError | None:
    """The error that an answer stands for; None for a 2xx."""
    if 200 <= answer.status < 300:
        return None
    if answer.status == 422:
        return _unprocessable(answer)
    if answer.status in _UNSENT:
        code, fault, permanent = _UNSENT[answer.status]
        return _unsent(answer, code, fault, permanent=permanent)
    if answer.status == 500 and _is_lock_timeout(answer.object()):
        return _unsent(answer, "session_busy", Fault.LANE)
    return ChannelError(
        "waha_error" if answer.status >= 500 else "waha_unexpected_answer",
        sent=Sent.MAYBE,
        fault=Fault.GATEWAY,
        retry_after=answer.retry_after,
        detail=f"WAHA answered {answer.status}",
    )


def check(answer: Answer) -> Answer:
    """The answer itself where it is a 2xx; raises its ChannelError otherwise."""
    error = refusal(answer)
    if error is not None:
        raise error
    return answer


def _unprocessable(answer: Answer) -> ChannelError:
    """422: a session in the wrong state has a body of its own, without ``message``."""
    body = answer.object()
    error, message = body.get("error"), body.get("message")
    if "message" not in body and isinstance(error, str):
        if "does not exist" in error:
            return _unsent(answer, "session_unknown", Fault.LANE)
        return _unsent(answer, "session_not_working", Fault.LANE, detail=_state(body))
    if isinstance(message, str) and "support only 'default' session" in message:
        return _unsent(answer, "session_unsupported", Fault.LANE)
    return _unsent(answer, "waha_rejected", Fault.CONTENT, permanent=True)


def _unsent(answer: Answer, code: str, fault: Fault, *, permanent: bool = False, detail: str = "") -> ChannelError:
    return ChannelError(
        code,
        sent=Sent.NO,
        fault=fault,
        permanent=permanent,
        retry_after=answer.retry_after,
        detail=detail or f"WAHA answered {answer.status}",
    )


def _state(body: dict[str, Any]) -> str:
    status = body.get("status")
    return f"the session is {status}" if isinstance(status, str) and _STATUS_WORD.fullmatch(status) else ""


def _is_lock_timeout(body: dict[str, Any]) -> bool:
    exception = body.get("exception")
    message = exception.get("message") if isinstance(exception, dict) else None
    return isinstance(message, str) and message.startswith("async-lock timed out")
