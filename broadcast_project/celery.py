"""The Celery application: a doorbell and hands. The rows are the memory."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broadcast_project.settings")

app = Celery("broadcast", task_cls="permissions.tasks:ScopedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Its receivers make a worker show that it consumes.
app.autodiscover_tasks(["broadcast_project"], related_name="pulse")


@setup_logging.connect
def configure_logging(**_signal: Any) -> None:
    """Keep Django's logging, with its redaction, in workers and beat too."""
    from logging.config import dictConfig

    from django.conf import settings

    dictConfig(settings.LOGGING)
