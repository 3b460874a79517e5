"""Whose rows the code that runs now may see: the database holds every statement to it.

Each request, task and command enters its scope in one place. ``permissions.postgres`` tells it to the database,
within the transaction of each statement; the policies of ``permissions.row_security`` do the rest. A forgotten
filter then finds nothing of another tenant, and a forgotten scope is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

log = logging.getLogger(__name__)


class NoScope(Exception):
    """Rows of tenants were asked for outside of every scope: enter ``isolation.of(…)`` first."""


class Sweep(StrEnum):
    """Who looks across tenants, and needs to."""

    API_KEY = "api key"
    BEAT = "beat"
    COMMAND = "command"
    DISPATCHER = "dispatcher"
    SIGN_IN = "sign-in"
    SUPER_ADMIN = "super-admin"
    WEBHOOK = "webhook"


class Reach(StrEnum):
    """How far a scope reaches; the database has a role for each, with a policy of its own."""

    ONE = "one"
    SEVERAL = "several"
    ALL = "sweep"


@dataclass(frozen=True, slots=True)
class Scope:
    """``organizations``: one id, or several as PostgreSQL writes an array; empty for none."""

    organizations: str = ""
    reach: Reach = Reach.ONE


NOWHERE = Scope()
_ACROSS = Scope(reach=Reach.ALL)
_current: ContextVar[Scope] = ContextVar("tenant_scope", default=NOWHERE)


def current() -> Scope:
    """The scope of the code that runs now."""
    return _current.get()


@contextmanager
def of(*organization_ids: UUID) -> Iterator[None]:
    """See the rows of these organizations and no others."""
    with entered(scope_of(organization_ids)):
        yield


@contextmanager
def across_tenants(sweep: Sweep, detail: object = "") -> Iterator[None]:
    """See the rows of all organizations. The one way to it, so that who uses it can be listed and is logged."""
    level = logging.INFO if sweep is Sweep.SUPER_ADMIN else logging.DEBUG
    log.log(level, "across tenants: %s %s", sweep, detail)
    with entered(_ACROSS):
        yield


@contextmanager
def nowhere() -> Iterator[None]:
    """See no tenant's rows until a scope is entered: the start of whatever comes from outside."""
    with entered(NOWHERE):
        yield


@contextmanager
def entered(scope: Scope) -> Iterator[None]:
    """Run in a scope that was taken with ``current``: for what is made now and goes on later."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


def settle_in(organization_id: UUID) -> None:
    """Take the organization's scope until the surrounding one ends: for a caller who is known only by and by."""
    _current.set(scope_of([organization_id]))


def scope_of(organization_ids: Iterable[UUID]) -> Scope:
    """The scope of these organizations; of none, one that sees nothing."""
    names = sorted(map(str, organization_ids))
    # One is compared with each row in a fraction of the time that a list takes.
    return Scope(names[0]) if len(names) == 1 else Scope("{" + ",".join(names) + "}", Reach.SEVERAL)
