"""``manage.py declare_age``: a number that has been in use for long need not warm up again."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from messaging import services
from messaging.management import arguments
from permissions.management.base import OperatorCommand


class Command(OperatorCommand):
    help = "Declares since when a number is in use, so that its caps and its right to broadcast follow its true age."

    def add_arguments(self, parser: CommandParser) -> None:
        arguments.add(parser)
        parser.add_argument("--since", required=True, metavar="YYYY-MM-DD", help="the day it came into use")

    def handle(self, *_args: Any, **options: Any) -> None:
        channel = arguments.channel(options["channel"])
        now = timezone.now()
        try:
            since = date.fromisoformat(options["since"])
        except ValueError as error:
            raise CommandError(f"--since: {options['since']} is not a day (YYYY-MM-DD)") from error
        if since > now.date():
            raise CommandError("--since: that day is still to come")
        by = arguments.super_admin(options["by"])
        try:
            services.set_age(channel.pk, since=since, reason=options["reason"], by=by, now=now)
        except services.LoosensALimit as error:
            raise CommandError(f"--reason: {error}") from error
        self.stdout.write(f"{channel.name}: in use since {since}")
