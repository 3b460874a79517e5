"""Buries what a supervisor killed with -9 leaves. Run as a script, standard library only.

    python -I -S undertaker.py GRACE_SECONDS

The kernel's death signal reaches a supervisor's children but not theirs, and a child that hangs may not obey.
So each supervisor has one of these: it reads `+GROUP` and `-GROUP` from standard input, and when that ends
because the supervisor is gone, the groups still named get GRACE_SECONDS to end, and are then killed. A group
whose leader has ended is killed at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

_POLL = 0.1


def main(arguments: list[str]) -> None:
    """Keep the list until standard input ends, then see every group of it to its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = _listen(sys.stdin)
    deadline = time.monotonic() + float(arguments[0])
    while groups and time.monotonic() < deadline:
        time.sleep(_POLL)
        groups = {group for group in groups if _send(group, 0 if _lives(group) else signal.SIGKILL)}
    for group in groups:
        _send(group, signal.SIGKILL)


def _listen(lines: Iterable[str]) -> set[int]:
    groups: set[int] = set()
    for line in lines:
        change, group = line[0], int(line[1:])
        if change == "+":
            groups.add(group)
        else:
            groups.discard(group)
    return groups


def _lives(leader: int) -> bool:
    try:
        os.kill(leader, 0)
    except ProcessLookupError:
        return False
    return True


def _send(group: int, number: int) -> bool:
    """Signal a group; false when nobody is left in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
