"""``manage.py run_dispatcher``: beside web, worker and beat."""

from __future__ import annotations

import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand

from broadcast_project import dispatcher


class Command(BaseCommand):
    help = "Claims due messages and rings the workers. Two may run."

    def handle(self, *_args: Any, **_options: Any) -> None:
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        dispatcher.run(stop)
