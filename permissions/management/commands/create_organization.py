"""Create a tenant and its first admin."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from permissions import audit, services
from permissions.management.base import OperatorCommand
from permissions.models import Membership


class Command(OperatorCommand):
    help = "Create an organization and its admin; `manage.py changepassword USERNAME` lets a new admin sign in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="lower-case letters, digits and hyphens")
        parser.add_argument("--name", required=True)
        parser.add_argument("--admin", required=True, metavar="USERNAME", help="made where it does not exist")
        parser.add_argument("--time-zone", default="America/Sao_Paulo")
        parser.add_argument("--region", default="BR", help="country of numbers typed without one, two letters")

    def handle(self, **options: Any) -> None:
        now = timezone.now()
        try:
            with transaction.atomic():
                organization = services.create_organization(
                    name=options["name"],
                    slug=options["slug"],
                    time_zone=options["time_zone"],
                    region=options["region"],
                    actor=audit.SYSTEM,
                    now=now,
                )
                admin = services.ensure_staff_user(username=options["admin"])
                services.set_role(
                    organization=organization, user=admin, role=Membership.Role.ADMIN, actor=audit.SYSTEM, now=now
                )
        except ValidationError as error:
            raise CommandError(_by_argument(error)) from None
        self.stdout.write(f"{organization.slug} is created; its admin is {admin.username}")


_ARGUMENTS = {"time_zone": "--time-zone", "region": "--region", "name": "--name", "username": "--admin"}


def _by_argument(error: ValidationError) -> str:
    parts = (f"{_ARGUMENTS.get(field, field)}: {' '.join(texts)}" for field, texts in error.message_dict.items())
    return "; ".join(parts)
