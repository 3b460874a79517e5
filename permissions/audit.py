"""The audit trail as this room sees it. The trail itself lives in a room above, named in the settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string


class Actor(Protocol):
    """Who did it: ``type`` is user, api_key or system; ``id`` a prefixed id."""

    @property
    def type(self) -> str: ...

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Machine:
    type: str = "system"
    id: str = ""


SYSTEM: Actor = _Machine()


def record(
    *,
    organization_id: UUID,
    type: str,  # noqa: A002 - the field's name in the contract
    subject: str,
    actor: Actor,
    now: datetime,
    data: dict[str, Any] | None = None,
) -> None:
    """Append one event by ``settings.AUDIT_RECORDER``, in the transaction in which it happens."""
    import_string(settings.AUDIT_RECORDER)(
        organization_id=organization_id, type=type, subject=subject, actor=actor, now=now, data=data
    )
