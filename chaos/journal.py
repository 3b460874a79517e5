"""What workers write down around each call of the gateway: only so can a doubt be traced to what caused it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, int]
MAYBE = "maybe "


@dataclass(slots=True)
class Call:
    """One attempt's call, by whom and how it ended: ``sent``, the code of an error, or not at all (None).

    Before the code of an error that leaves it open whether the message left stands MAYBE.
    """

    pid: int
    began_at: float
    ended: str | None = None
    ended_at: float | None = None


class Journal:
    """Appended to by many processes at once, a line at a time."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def around(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """An adapter's ``send`` that writes down its beginning and its end."""
        from messaging.adapters import ChannelError, Sent

        def wrapped(adapter: Any, outgoing: Any, **limits: Any) -> Any:
            key = [str(outgoing.message_id), outgoing.attempt]
            self._write(key, "")
            try:
                answer = send(adapter, outgoing, **limits)
            except ChannelError as error:
                self._write(key, f"{MAYBE}{error.code}" if error.sent is Sent.MAYBE else error.code)
                raise
            self._write(key, "sent")
            return answer

        return wrapped

    def _write(self, key: list[Any], word: str) -> None:
        # The machine's own clock, also where this process's is off.
        at = time.clock_gettime(time.CLOCK_REALTIME)
        os.write(self._descriptor, json.dumps([*key, os.getpid(), word, at]).encode() + b"\n")


def read(path: Path) -> dict[Key, Call]:
    """``{(message, attempt): call}``; no call stands for one that no worker began."""
    calls: dict[Key, Call] = {}
    for message, attempt, pid, word, at in _lines(path):
        if not word:
            calls[message, attempt] = Call(pid, at)
        elif (call := calls.get((message, attempt))) is not None:
            call.ended, call.ended_at = word, at
    return calls


def _lines(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)
