"""`manage.py migrate`: Django's own, as the owner of the tables unless told otherwise."""

from __future__ import annotations

from django.core.management.base import CommandParser
from django.core.management.commands import migrate

OWNER = "owner"


class Command(migrate.Command):
    """Migrations are the owner's: the role that serves may not change a table."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database=OWNER)
