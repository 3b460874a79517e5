"""``manage.py run_dispatcher``: beside web, worker and beat."""

from __future__ import annotations

import signal
from threading import Event
from typing import Any

from broadcast_project import dispatcher
from permissions.isolation import Sweep
from permissions.management.base import OperatorCommand


class Command(OperatorCommand):
    sweep = Sweep.DISPATCHER
    help = "Claims due messages and rings the workers. Two may run."

    def handle(self, *_args: Any, **_options: Any) -> None:
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        dispatcher.run(stop)
