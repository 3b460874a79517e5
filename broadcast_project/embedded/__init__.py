"""PostgreSQL and Valkey from wheels, owned by the project: for trying and testing, and they say so.

Importable before Django, standard library only. `addresses()` is what settings read when DATABASE_URL or
REDIS_URL is not set; `running()` tells whether a living process holds the services; `Embedded` holds them.
"""

from __future__ import annotations

from pathlib import Path

from broadcast_project.embedded import addresses as _places
from broadcast_project.embedded.addresses import Addresses, kept_secret
from broadcast_project.embedded.errors import AlreadyRunningError, EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.embedded.provide import STATE, available
from broadcast_project.embedded.services import Embedded

__all__ = [
    "STATE",
    "Addresses",
    "AlreadyRunningError",
    "Embedded",
    "EmbeddedError",
    "addresses",
    "available",
    "kept_secret",
    "running",
]


def addresses(state: Path = STATE, *, name: str = "main") -> Addresses:
    """Where the services are, or will be when they run. Nothing is started, written or checked."""
    return _places.addresses(Layout.of(state, name))


def running(state: Path = STATE, *, name: str = "main") -> Addresses | None:
    """The addresses, if a living process holds the services and both have answered it. Else None."""
    return _places.running(Layout.of(state, name))
