"""The least that the usual design needs; the same servers, the same pool as the product."""

from __future__ import annotations

import os

from broadcast_project import environment

SECRET_KEY = "bench"  # noqa: S105 - a benchmark has none
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
INSTALLED_APPS = ["bench.usual"]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "bench.usual.urls"
DATABASES = {"default": environment.database("DATABASE_URL", "")}
DATABASES["default"] |= {
    "CONN_MAX_AGE": 0,
    "OPTIONS": {
        **DATABASES["default"].get("OPTIONS", {}),
        "pool": {"min_size": 1, "max_size": 16, "timeout": 10},
        "prepare_threshold": 5,
        "options": "-c synchronous_commit=on",
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Another database of the same Valkey.
CELERY_BROKER_URL = os.environ["REDIS_URL"].rsplit("/", 1)[0] + "/9"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
LOGGING_CONFIG = None
