"""What NOWEB's engine says of its connection: `state.change` and `engine.event`, as recorded."""

import datetime
from typing import Any

# Why a connection is closed: a status and Baileys' words for it.
LOGOUT = (401, "Unauthorized", "Intentional Logout")
REMOVED = (401, "Unauthorized", "Stream Errored (conflict)")
LOST = (428, "Precondition Required", "Connection Closed")


def closed(why: tuple[int, str, str], *, at: float) -> dict[str, Any]:
    """`at` in epoch seconds."""
    status, error, message = why
    shown = message if why is LOGOUT else error
    output = {
        "statusCode": status,
        "payload": {"statusCode": status, "error": shown, "message": message},
        "headers": {},
    }
    date = datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="milliseconds")
    last = {"error": {"isBoom": True, "output": output}, "date": date.replace("+00:00", "Z")}
    return {"connection": "close", "lastDisconnect": last}


def connecting(*, event_id: str, at_ms: int) -> dict[str, Any]:
    data = {"connection": "connecting", "receivedPendingNotifications": False}
    return {"event": "connection.update", "data": data | {"_eventId": event_id, "_timestampMs": at_ms}}
