"""Give an API key another secret, and print the key, this once."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from permissions import audit, selectors, services
from permissions.management.base import OperatorCommand

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def overlap(text: str) -> timedelta:
    """``90m``, ``24h``, ``7d``, or ``0``."""
    match = re.fullmatch(r"(\d{1,5})([mhd])|0", text, re.ASCII)
    if match is None:
        raise ArgumentTypeError("a time such as 90m, 24h or 7d is needed, or 0")
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match[1] else timedelta(0)


class Command(OperatorCommand):
    help = (
        "Rotate an API key by the 8 characters after cbk_; the key with its new secret is printed once, alone on"
        " standard output. The old secret works on for the overlap, the one before it no longer."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id", metavar="KEYID", help="the key's id, or the key itself")
        parser.add_argument(
            "--overlap",
            type=overlap,
            default=services.OVERLAP,
            metavar="TIME",
            help="how long the old secret works on: 90m, 24h (the default), 7d, at most 30d; 0 ends it at once",
        )

    def handle(self, **options: Any) -> None:
        key = selectors.key_by_public_id(options["key_id"])
        if key is None:
            raise CommandError("KEYID: there is no such key")
        now = timezone.now()
        try:
            plain = services.rotate_key(key=key, overlap=options["overlap"], actor=audit.SYSTEM, now=now)
        except services.OverlapTooLong as error:
            raise CommandError(f"--overlap: {error}") from None
        except (services.KeyEnded, services.NotAMember) as error:
            raise CommandError(f"KEYID: {error}") from None
        self.stdout.write(plain)
        until = timezone.localtime(now + options["overlap"])
        self.stderr.write(f"the old secret of {key.public_id} works until {until.isoformat(timespec='seconds')}")
