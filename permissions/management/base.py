"""The base of the installation's own commands."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from permissions import isolation
from permissions.isolation import Sweep


class OperatorCommand(BaseCommand):
    """A command of whoever runs the installation: it looks across tenants, and the log says which one does."""

    sweep: ClassVar[Sweep] = Sweep.COMMAND

    def execute(self, *args: Any, **options: Any) -> str | None:
        with isolation.across_tenants(self.sweep, type(self).__module__.rpartition(".")[2]):
            try:
                return super().execute(*args, **options)
            except OperationalError as error:
                # A database that was never migrated has no role to serve as: it reads like one that is away.
                hint = "Is the database up, and was it migrated (manage.py migrate_locked)?"
                raise CommandError(f"{str(error).strip()}\n{hint}") from error
