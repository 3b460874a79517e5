"""``manage.py set_window``: the hours in which a number's automatic messages may leave."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from messaging import services
from messaging.management import arguments
from permissions.management.base import OperatorCommand


class Command(OperatorCommand):
    help = "Sets a number's window of hours, in the organization's time zone."

    def add_arguments(self, parser: CommandParser) -> None:
        arguments.add(parser)
        parser.add_argument("--opens", required=True, metavar="HH:MM")
        parser.add_argument("--closes", required=True, metavar="HH:MM", help="24:00, or the same as --opens: all day")

    def handle(self, *_args: Any, **options: Any) -> None:
        channel = arguments.channel(options["channel"])
        by = arguments.super_admin(options["by"])
        opens, closes = _moment("--opens", options["opens"]), _moment("--closes", options["closes"])
        try:
            services.set_window(
                channel.pk, opens=opens, closes=closes, reason=options["reason"], by=by, now=timezone.now()
            )
        except services.LoosensALimit as error:
            raise CommandError(f"--reason: {error}") from error
        self.stdout.write(f"{channel.name}: {options['opens']}–{options['closes']}")


def _moment(name: str, text: str) -> time:
    if text == "24:00":
        return time(0)
    try:
        # Hours and minutes alone: the zone is the organization's.
        return datetime.strptime(text, "%H:%M").time()
    except ValueError as error:
        raise CommandError(f"{name}: {text} is not a time (HH:MM)") from error
