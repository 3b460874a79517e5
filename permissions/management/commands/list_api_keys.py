"""List API keys: whose they are, what they may do, and whether anybody uses them. Never a secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from permissions import selectors
from permissions.management.base import OperatorCommand
from permissions.models import ApiKey

_COLUMNS = ("id", "organization", "owner", "name", "state", "scopes", "created", "last used", "expires", "old secret")


class Command(OperatorCommand):
    help = "List API keys with owner, scopes, state and last use; those that have ended too, with --all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", metavar="SLUG", help="only of this one")
        parser.add_argument("--all", action="store_true", help="expired and revoked ones too")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, **options: Any) -> None:
        organization = None
        if options["organization"] is not None:
            organization = selectors.organization_by_slug(options["organization"])
            if organization is None:
                raise CommandError(f"--organization: there is no organization {options['organization']}")
        now = timezone.now()
        rows = [
            _row(key, now)
            for key in selectors.keys_of(organization)
            if options["all"] or key.state_at(now) == ApiKey.State.ACTIVE
        ]
        if options["json"]:
            for row in rows:
                self.stdout.write(json.dumps(dict(zip(_COLUMNS, row, strict=True)), ensure_ascii=False))
        else:
            self.stdout.write(_table([_COLUMNS, *rows]))


def _row(key: ApiKey, now: datetime) -> tuple[str, ...]:
    overlaps = key.previous_expires_at is not None and key.previous_expires_at > now
    return (
        key.public_id,
        key.organization.slug,
        key.owner.username,
        key.name,
        key.state_at(now).value,
        " ".join(key.scopes),
        _time(key.created_at),
        _time(key.last_used_at),
        _time(key.expires_at),
        _time(key.previous_expires_at) if overlaps else "-",
    )


def _time(moment: datetime | None) -> str:
    return "-" if moment is None else timezone.localtime(moment).isoformat(timespec="seconds")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
