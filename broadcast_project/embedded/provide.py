"""Services for as long as somebody needs them: those of the environment, those that run, or else our own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from broadcast_project.embedded import addresses as places
from broadcast_project.embedded.errors import AlreadyRunningError, EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.embedded.services import Embedded

STATE = Path(__file__).resolve().parents[2] / "var"

_PATIENCE = 90.0
_POLL = 0.1


@contextmanager
def available(state: Path = STATE, *, name: str = "main", say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Both services answer inside the block.

    Nothing to do where DATABASE_URL and REDIS_URL are both set. Otherwise those that a process of this
    checkout holds are used, and if none does they are started for the block's life. `say` gets a line then,
    and when one of them ends by itself.
    """
    if os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"):
        yield
        return
    services = _hold(state, name, say)
    if services is not None and say is not None:
        say("embedded PostgreSQL and Valkey started; they are for trying and testing, not for production")
    try:
        yield
    finally:
        if services is not None:
            services.stop()


def _hold(state: Path, name: str, say: Callable[[str], None] | None) -> Embedded | None:
    """Services started by us, or None when another process holds them. Two that begin at once agree here."""
    layout = Layout.of(state, name)
    deadline = time.monotonic() + _PATIENCE
    while places.running(layout) is None:
        services = Embedded(state, name=name, say=say)
        try:
            services.start()
        except AlreadyRunningError:
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"process {places.owner(layout)} holds the embedded services but they do not answer"
                ) from None
            time.sleep(_POLL)
        else:
            return services
    return None
