"""Beat's scheduler, with a pulse."""

from __future__ import annotations

from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

from broadcast_project.supervisor import pulse


class PulsingScheduler(DatabaseScheduler):  # type: ignore[misc]  # it has no types
    """Renews the pulse at each turn, which comes every few seconds whatever is due."""

    def tick(self, *arguments: Any, **options: Any) -> float:
        """One turn; seconds until the next."""
        pulse.renew()
        return float(super().tick(*arguments, **options))
