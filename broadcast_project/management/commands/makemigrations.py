"""`manage.py makemigrations`: Django's own, which looks at the history as the owner of the tables."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemigrations
from django.db import DEFAULT_DB_ALIAS, connections

from broadcast_project.management.commands.migrate import OWNER


class Command(makemigrations.Command):
    """The role that serves is made by a migration: before the first one the look waited for it, in vain."""

    def handle(self, *app_labels: str, **options: Any) -> None:
        """As Django's."""
        connections[DEFAULT_DB_ALIAS] = connections[OWNER].copy(alias=DEFAULT_DB_ALIAS)
        super().handle(*app_labels, **options)
