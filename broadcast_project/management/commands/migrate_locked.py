"""`manage.py migrate_locked`: migrates once, however many start at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections

from broadcast_project.management.commands.migrate import OWNER

# Any number that no other advisory lock of the product uses.
_LOCK = 7_261_938_450_215_003


class Command(BaseCommand):
    help = "Apply all migrations under an advisory lock, so that processes that start together wait in turn."

    def handle(self, *_args: Any, **options: Any) -> None:
        """Wait for the lock, however long another takes, then migrate."""
        with _alone():
            call_command(
                "migrate", database=OWNER, interactive=False, verbosity=options["verbosity"], stdout=self.stdout
            )


@contextmanager
def _alone() -> Iterator[None]:
    with connections[OWNER].cursor() as cursor:
        # A migration may take longer than any request may.
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        yield
    finally:
        with connections[OWNER].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
            cursor.execute("RESET lock_timeout")
            cursor.execute("RESET statement_timeout")
