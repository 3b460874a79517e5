"""Issue an API key and print it, this once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from permissions import audit, selectors, services
from permissions.management.base import OperatorCommand
from permissions.models import Scope


class Command(OperatorCommand):
    help = "Issue an API key; the key is printed once, alone on standard output."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", required=True, metavar="SLUG")
        parser.add_argument("--owner", required=True, metavar="USERNAME", help="an active member of the organization")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            choices=Scope.values,
            help="may be repeated; broadcast:send by default",
        )
        parser.add_argument("--expires-in-days", type=int, metavar="N", help="without it the key does not expire")

    def handle(self, **options: Any) -> None:
        organization = selectors.organization_by_slug(options["organization"])
        if organization is None:
            raise CommandError(f"--organization: there is no organization {options['organization']}")
        owner = selectors.user_by_name(options["owner"])
        if owner is None:
            raise CommandError(f"--owner: there is no user {options['owner']}")
        days = options["expires_in_days"]
        if days is not None and not 1 <= days <= services.LONGEST_DAYS:
            raise CommandError(f"--expires-in-days: a number from 1 to {services.LONGEST_DAYS} is needed")
        now = timezone.now()
        try:
            _key, plain = services.issue_key(
                organization=organization,
                owner=owner,
                name=options["name"],
                scopes=options["scopes"],
                expires_at=now + timedelta(days=days) if days else None,
                actor=audit.SYSTEM,
                now=now,
            )
        except services.NotAMember as error:
            raise CommandError(f"--owner: {error}") from None
        except ValidationError as error:
            raise CommandError(f"--name: {' '.join(error.messages)}") from None
        self.stdout.write(plain)
