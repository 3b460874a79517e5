"""Revoke an API key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from permissions import audit, selectors, services
from permissions.management.base import OperatorCommand


class Command(OperatorCommand):
    help = "Revoke an API key by the 8 characters after cbk_; what its owner started with it goes on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key_id", metavar="KEYID", help="the key's id, or the key itself")

    def handle(self, **options: Any) -> None:
        key = selectors.key_by_public_id(options["key_id"])
        if key is None:
            raise CommandError("KEYID: there is no such key")
        if services.revoke_key(key=key, actor=audit.SYSTEM, now=timezone.now()):
            self.stdout.write(f"{key.public_id} is revoked")
        else:
            self.stdout.write(f"{key.public_id} was revoked before")
