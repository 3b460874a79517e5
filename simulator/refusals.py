"""WAHA's error bodies, word for word."""

import base64
import datetime
import traceback
from collections.abc import Sequence
from typing import Any

PLUS_ONLY = (
    "The feature is available only in Plus version for '{engine}' engine. Check this out: https://waha.devlike.pro/"
)
STORE_OFF = (
    'Enable NOWEB store "config.noweb.store.enabled=True" and "config.noweb.store.full_sync=True" '
    "when starting a new session. Read more: https://waha.devlike.pro/docs/engines/noweb#store"
)
ID_FORMAT = "Message id be in format false_11111111111@c.us_AAAAAAAAAAAAAAAAAAAA[_participant]"


class RefusedError(Exception):
    """An answer that is no success: a status and a body (None is an empty one)."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"refused with {status}")
        self.status = status
        self.body = body


class EngineError(Exception):
    """What WAHA's engine throws; answered 500 with the request echoed."""

    def __init__(self, message: str, *, name: str = "Error", extra: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.extra = extra or {}


def connection_closed() -> EngineError:
    """The engine lost its socket: ambiguous to the caller, who cannot tell whether it was sent."""
    return EngineError("Connection Closed", extra={"isBoom": True, "output": {}})


def unauthorized() -> RefusedError:
    return RefusedError(401, {"message": "Unauthorized", "statusCode": 401})


def bad_request(message: str | Sequence[str]) -> RefusedError:
    shown = message if isinstance(message, str) else list(message)
    return RefusedError(400, {"message": shown, "error": "Bad Request", "statusCode": 400})


def not_found(message: str = "Session not found") -> RefusedError:
    return RefusedError(404, {"message": message, "error": "Not Found", "statusCode": 404})


def unprocessable(message: str) -> RefusedError:
    return RefusedError(422, {"message": message, "error": "Unprocessable Entity", "statusCode": 422})


def not_implemented() -> RefusedError:
    """What this engine cannot do."""
    message = "The method is not implemented by the engine."
    return RefusedError(501, {"message": message, "error": "Not Implemented", "statusCode": 501})


def session_not_running(name: str) -> RefusedError:
    return not_found(
        f"We didn't find a session with name '{name}'.\n"
        f"Please start it first by using POST /api/sessions/{name}/start request"
    )


def session_missing(name: str) -> RefusedError:
    """After the wait of 5 s: neither `message` nor `statusCode`."""
    return RefusedError(422, {"error": f'Session "{name}" does not exist', "session": name})


def wrong_status(name: str, status: str, expected: Sequence[str]) -> RefusedError:
    """After a wait of 5 or 10 s: neither `message` nor `statusCode`."""
    return RefusedError(
        422,
        {
            "error": "Session status is not as expected. Try again later or restart the session",
            "session": name,
            "status": status,
            "expected": list(expected),
        },
    )


def core_session_only(name: str) -> RefusedError:
    shown = base64.b64encode(name.encode()).decode()
    return unprocessable(
        f"WAHA Core support only 'default' session. You tried to access '{name}' session (base64: {shown}). "
        "If you want to run more then one WhatsApp account - please get WAHA PLUS version. "
        "Check this out: https://waha.devlike.pro/"
    )


def internal_error(
    error: Exception, *, path: str, method: str, body: Any, query: dict[str, str], version: dict[str, Any]
) -> dict[str, Any]:
    """The body of a 500. It echoes the request, texts included, as WAHA does."""
    known = isinstance(error, EngineError)
    name = error.name if isinstance(error, EngineError) else type(error).__name__
    stack = "" if known else "\n" + "".join(traceback.format_tb(error.__traceback__))
    exception: dict[str, Any] = {"message": str(error), "name": name}
    if isinstance(error, EngineError):
        exception |= error.extra
    exception["stack"] = f"{name}: {error}\n    at simulator{stack}"
    request: dict[str, Any] = {"path": path, "method": method}
    if body is not None:
        request["body"] = body
    request["query"] = query
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "statusCode": 500,
        "timestamp": now,
        "exception": exception,
        "request": request,
        "version": version,
    }
