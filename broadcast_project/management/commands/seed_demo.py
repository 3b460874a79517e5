"""``manage.py seed_demo``: the demo's tenant, in an empty database, on the simulator."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from broadcast_project.demo import seed
from broadcast_project.demo.client import Client
from permissions.management.base import OperatorCommand
from permissions.models import Organization


class Command(OperatorCommand):
    help = "Makes the demo's tenant and pairs its numbers on the simulator; prints what it made as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--people", type=int, default=45, help="lines of the group, at least 4")
        parser.add_argument("--numbers", type=int, default=3)
        parser.add_argument("--time-zone", default="America/Sao_Paulo")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["people"] < 4:
            raise CommandError("--people: a group of the demo has at least 4 lines")
        if Organization.objects.exists():
            raise CommandError("the database has organizations already: the demo's tenant is for an empty one")
        seeded = seed.seed(
            simulator=Client(settings.WAHA_BASE_URL),
            people=options["people"],
            numbers=options["numbers"],
            time_zone=options["time_zone"],
            now=timezone.now(),
        )
        self.stdout.write(json.dumps(seed.as_json(seeded)))
