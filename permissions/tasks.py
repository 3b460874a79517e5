"""The base of every Celery task: it enters its tenant scope here and nowhere else."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from celery import Task

from permissions import isolation
from permissions.isolation import Sweep

if TYPE_CHECKING:
    _Task = Task[..., Any]
else:
    # Its class takes no parameters at run time.
    _Task = Task


class ScopedTask(_Task):
    """Runs in the scope of its ``organization_id`` argument, or across tenants as the ``sweep`` it declares.

    Without either it sees no tenant's rows.
    """

    abstract = True
    sweep: ClassVar[Sweep | None] = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        with self._scope(options.get("organization_id")):
            return super().__call__(*args, **options)

    def _scope(self, organization_id: str | None) -> AbstractContextManager[None]:
        if self.sweep is not None:
            return isolation.across_tenants(self.sweep, self.name)
        return isolation.of(UUID(organization_id)) if organization_id else isolation.nowhere()


class BeatTask(ScopedTask):
    """A periodic run: it looks after the rows of all tenants."""

    abstract = True
    sweep = Sweep.BEAT
