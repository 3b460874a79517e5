"""What the other side sees before a text comes: "typing…". Where that fails, it comes all the same."""

from __future__ import annotations

import logging
import time

from channels_waha import client, refusals
from channels_waha.client import Server
from messaging.adapters import ChannelError

log = logging.getLogger(__name__)

# A quick writer's pace; what is shorter than the least looks like nothing at all.
_SECONDS_PER_CHARACTER = 0.06
_LEAST_SECONDS = 0.8
# What a call may take: WAHA would wait 15 s for a session that is in another state.
_CALL_SECONDS = 2.0


def typing_seconds(text: str, *, most: float, spread: float) -> float:
    """How long a person would type, and never longer than ``most``. ``spread``: 0 ≤ x < 1, drawn anew each time."""
    typed = _LEAST_SECONDS + len(text) * _SECONDS_PER_CHARACTER
    return min(typed * (0.75 + spread / 2), most)


def show_typing(server: Server, session_name: str, chat: str, *, seconds: float, deadline: float) -> None:
    """Show "typing…" in a chat for so long, and take it away again. Over by ``deadline`` (monotonic)."""
    body = {"session": session_name, "chatId": chat}
    stop_by = deadline - _CALL_SECONDS
    if not _tell(server, "startTyping", body, deadline=min(time.monotonic() + _CALL_SECONDS, stop_by)):
        return
    time.sleep(max(min(seconds, stop_by - time.monotonic()), 0.0))
    _tell(server, "stopTyping", body, deadline=min(time.monotonic() + _CALL_SECONDS, deadline))


def _tell(server: Server, call: str, body: dict[str, str], *, deadline: float) -> bool:
    try:
        refusals.check(client.call(server, "POST", f"/api/{call}", body=body, deadline=deadline))
    except ChannelError as error:
        log.info("%s failed: %s", call, error.code)
        return False
    return True
