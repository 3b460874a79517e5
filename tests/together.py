"""Jobs at one moment, each in a thread with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from permissions import isolation
from permissions.isolation import Sweep

_PATIENCE_SECONDS = 10


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run the jobs at once, seeing every tenant; what each returned, in their order."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        try:
            start.wait(_PATIENCE_SECONDS)
            with isolation.across_tenants(Sweep.COMMAND, "test"):
                return job()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))
