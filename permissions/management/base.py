"""The base of the installation's own commands."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand

from permissions import isolation
from permissions.isolation import Sweep


class OperatorCommand(BaseCommand):
    """A command of whoever runs the installation: it looks across tenants, and the log says which one does."""

    sweep: ClassVar[Sweep] = Sweep.COMMAND

    def execute(self, *args: Any, **options: Any) -> str | None:
        with isolation.across_tenants(self.sweep, type(self).__module__.rpartition(".")[2]):
            return super().execute(*args, **options)
