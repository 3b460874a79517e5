"""`manage.py migrate`: Django's own, as the owner of the tables unless told otherwise."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate

from permissions.row_security import RoleMissing

OWNER = "owner"


class Command(migrate.Command):
    """Migrations are the owner's: the role that serves may not change a table."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database=OWNER)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except RoleMissing as error:
            raise CommandError(str(error)) from error
