"""Standings kept for a minute, and dropped when what they were read from changes."""

from __future__ import annotations

import logging
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.utils.module_loading import import_string
from redis.exceptions import RedisError

from permissions.directory import Directory, Standing
from permissions.ids import new_id

log = logging.getLogger(__name__)

KEPT_SECONDS = 60


def read(*, organization_id: UUID, user_id: UUID) -> Standing:
    """A person's standing, at most a minute old; fresh inside a transaction, and where the cache is down.

    Inside a transaction rows may be seen that are never committed: none of that is kept.
    """
    if connection.in_atomic_block:
        return fresh(organization_id=organization_id, user_id=user_id)
    try:
        name = f"standing:{_edition(user_id)}:{organization_id}"
        kept = cast("Standing | None", cache.get(name))
    except RedisError:
        log.warning("the cache is down: standings are read from the directory")
        return fresh(organization_id=organization_id, user_id=user_id)
    if kept is not None:
        return kept
    standing = fresh(organization_id=organization_id, user_id=user_id)
    _keep(name, standing)
    return standing


def fresh(*, organization_id: UUID, user_id: UUID) -> Standing:
    """A person's standing by the directory, now."""
    return _directory().standing(organization_id=organization_id, user_id=user_id)


def admins(*, organization_id: UUID) -> frozenset[UUID]:
    """The active admins of the organization by the directory, now."""
    return _directory().admins(organization_id=organization_id)


def _directory() -> Directory:
    directory: Directory = import_string(settings.PEOPLE_DIRECTORY)()
    return directory


def drop_after_commit(user_id: UUID) -> None:
    """Forget all that is kept of a person once the present transaction is committed."""
    transaction.on_commit(lambda: drop(user_id))


def drop(user_id: UUID) -> None:
    """Forget all that is kept of a person. A cache that is down forgets by itself within a minute."""
    try:
        cache.set(_edition_name(user_id), new_id().hex, timeout=None)
    except RedisError:
        log.warning("the cache is down: a standing may be %d s old", KEPT_SECONDS)


def _edition(user_id: UUID) -> str:
    """Part of every name under which something of this person is kept.

    Whoever read the rows before a change keeps his answer under the old edition, where nobody looks.
    """
    return str(cache.get_or_set(_edition_name(user_id), lambda: new_id().hex, timeout=None))


def _edition_name(user_id: UUID) -> str:
    return f"standing-edition:{user_id}"


def _keep(name: str, standing: Standing) -> None:
    try:
        cache.set(name, standing, timeout=KEPT_SECONDS)
    except RedisError:
        log.warning("the cache is down: a standing was not kept")


def on_change(instance: Any, **_signal: Any) -> None:
    """Receiver of saved and deleted Memberships and TeamMembers."""
    drop_after_commit(instance.user_id)


def on_user_change(instance: Any, **_signal: Any) -> None:
    """Receiver of saved and deleted Users."""
    drop_after_commit(instance.pk)
