"""All settings, from the environment only. Each variable is explained in .env.example."""

from __future__ import annotations

import secrets
import zoneinfo
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

from broadcast_project import embedded, environment

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = BASE_DIR / "var"


def _kept_secret(name: str) -> str:
    """A secret of the environment; without a DATABASE_URL (trying it out) one made once and kept in var/."""
    if value := environment.text(name):
        return value
    if environment.text("DATABASE_URL"):
        raise ImproperlyConfigured(f"{name} is required where DATABASE_URL is set")
    return embedded.kept_secret(STATE_DIR, name.lower(), lambda: secrets.token_urlsafe(48))


# Django
DEBUG = environment.flag("DEBUG")
SECRET_KEY = _kept_secret("SECRET_KEY")
FIELD_ENCRYPTION_KEYS = [key for key in _kept_secret("FIELD_ENCRYPTION_KEYS").split(",") if key.strip()]
if not FIELD_ENCRYPTION_KEYS:
    raise ImproperlyConfigured("FIELD_ENCRYPTION_KEYS must hold at least one key")
PORT = environment.port("PORT", 8000)
PUBLIC_BASE_URL = environment.url("PUBLIC_BASE_URL", f"http://127.0.0.1:{PORT}")
# Where WAHA reaches us; other than PUBLIC_BASE_URL inside a private network.
WEBHOOK_BASE_URL = environment.url("WEBHOOK_BASE_URL", PUBLIC_BASE_URL)
_PUBLIC = urlsplit(PUBLIC_BASE_URL)
# This machine asks whether we are ready, and WAHA posts to its own name for us, whatever browsers use.
_LOCAL = {"127.0.0.1", "localhost", urlsplit(WEBHOOK_BASE_URL).hostname or ""}
ALLOWED_HOSTS = sorted({*environment.names("ALLOWED_HOSTS", [_PUBLIC.hostname or ""]), *_LOCAL})
CSRF_FAILURE_VIEW = "permissions.api.fallbacks.csrf_failure"
CSRF_TRUSTED_ORIGINS = [f"{_PUBLIC.scheme}://{_PUBLIC.netloc}"]

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_standardized_errors",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "permissions",
    "events",
    "audience",
    "messaging",
    "channels_waha",
    "broadcasts",
    "broadcast_project",
]

MIDDLEWARE = [
    "permissions.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "permissions.middleware.TrailingSlashMiddleware",
    "permissions.middleware.MachinesMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "permissions.middleware.TenantScopeMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "broadcast_project.urls"
WSGI_APPLICATION = "broadcast_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_USER_MODEL = "permissions.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LOGIN_REDIRECT_URL = "admin:index"

LANGUAGE_CODE = "pt-br"
LANGUAGES = [("pt-br", _("Portuguese")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "America/Sao_Paulo"
# Countries change their clocks by law: the zones are those of the tzdata that is locked, never of the machine's image.
zoneinfo.reset_tzpath(to=())
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
# Assets come from the packages they are shipped in: nothing to collect before a first run.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

_HTTPS = PUBLIC_BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = _HTTPS
CSRF_COOKIE_SECURE = _HTTPS
# A redirected webhook loses its body (WAHA follows 301 as a GET), so https is the proxy's to demand.
SECURE_SSL_REDIRECT = False
SECURE_HSTS_SECONDS = environment.whole("SECURE_HSTS_SECONDS", 31_536_000) if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _HTTPS
SECURE_HSTS_PRELOAD = _HTTPS
BEHIND_PROXY = environment.flag("BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SILENCED_SYSTEM_CHECKS = ["security.W008"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# Of one key, or one signed-in person, all web processes together.
API_REQUESTS_PER_MINUTE = environment.counting("API_REQUESTS_PER_MINUTE", 600)
# Of one address; beyond it unknown keys are refused without a look.
API_BAD_KEYS_PER_MINUTE = environment.counting("API_BAD_KEYS_PER_MINUTE", 120)
WEBHOOK_MAX_BYTES = 10 * 1024 * 1024

# PostgreSQL, always
_DATABASE_URL = environment.text("DATABASE_URL", embedded.addresses(STATE_DIR).database_url)
DATABASES = {"default": environment.database("DATABASE_URL", _DATABASE_URL)}
# What serves runs as this role, which owns no table: row-level security holds it to the tenant of each statement.
DATABASE_ROLE = environment.matching("DATABASE_ROLE", "broadcast_app", r"[a-z_][a-z0-9_]{0,50}", "a role's plain name")
# Migrations run as the owner: the same login without that role, or another one.
DATABASES["owner"] = environment.database("DATABASE_OWNER_URL", _DATABASE_URL) | {"TEST": {"MIRROR": "default"}}
DATABASES["default"] |= {
    "ENGINE": "permissions.postgres",
    "CONN_MAX_AGE": 0,
    # After a database restart every pooled connection would fail once without it.
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": {
        # What the URL says after its question mark: sslmode, or the folder of a Unix socket.
        **DATABASES["default"].get("OPTIONS", {}),
        "pool": {
            "min_size": 1,
            "max_size": environment.counting("DATABASE_POOL_SIZE", 8),
            "timeout": environment.positive("DATABASE_POOL_WAIT_SECONDS", 10),
            # Its tries back off up to a minute within this time, and nobody's wish for a connection wakes them: with
            # the default of 300 s a database that had been away for 70 s was still "away" 50 s after its return.
            "reconnect_timeout": 4,
        },
        # One that is switched off says nothing; the system would wait two minutes for a word.
        "connect_timeout": 3,
        # Django's default is never to prepare; the engine's statements halve PostgreSQL's time by it.
        "prepare_threshold": 5,
        # The role: not Django's assume_role, whose first connection waits for itself in a pool.
        # "It is leaving" must survive a crash of the server, whatever the server's own default: with
        # synchronous_commit off a message that had left was forgotten and sent again (tests/flows).
        "options": f"-c role={DATABASE_ROLE} -c synchronous_commit=on -c statement_timeout=30000 -c lock_timeout=10000"
        " -c idle_in_transaction_session_timeout=60000",
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Redis or Valkey: a doorbell, never the memory
REDIS_URL = environment.matching(
    "REDIS_URL", embedded.addresses(STATE_DIR).redis_url, r"rediss?://\S+", "a redis:// or rediss:// URL"
)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        # A cache that is slow to answer is worth less than a query.
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},
    }
}

# Celery: the measured settings (docs/decisions) for a broker that may lose everything
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "messaging.tasks.send_message": {"queue": "send"},
    "messaging.tasks.send_messages": {"queue": "send"},
    "messaging.tasks.apply_events": {"queue": "inbound"},
}
# Early acks: the lease on the row outlives a lost worker in seconds, the broker's timeout in minutes.
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONSUMER = "broadcast_project.celery_consumer:PacedConsumer"
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 25
# On idle it would sleep all of that time; it is for tasks with an ETA, which we never have.
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 900,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
}
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_BEAT_SCHEDULER = "broadcast_project.scheduler:PulsingScheduler"

# The engine. Flow tests shorten these; the pace itself is messaging.rules.
SEND_WORKER_RATE = environment.matching("SEND_WORKER_RATE", "100/s", r"[1-9]\d*/[smh]", "a rate such as 100/s")
DISPATCH_TICK_SECONDS = environment.positive("DISPATCH_TICK_SECONDS", 0.15)
# How many sends all workers together can do at once: threads (-c) of each, times workers.
SEND_THREADS = environment.counting("SEND_THREADS", 16)
# Sends of slices that one worker process does at once, beside its own threads.
SLICE_THREADS = environment.counting("SLICE_THREADS", 32)
DISPATCH_BACKLOG = environment.counting("DISPATCH_BACKLOG", 200)
CLAIM_LEASE_SECONDS = environment.positive("CLAIM_LEASE_SECONDS", 20)
SEND_DEADLINE_SECONDS = environment.positive("SEND_DEADLINE_SECONDS", 20)
# For how long a settle is tried again while the database is away; the lane stays busy for it.
SETTLE_SECONDS = environment.positive("SETTLE_SECONDS", 15)
FIRST_BYTE_SECONDS = environment.positive("FIRST_BYTE_SECONDS", 2)
EVIDENCE_SECONDS = environment.positive("EVIDENCE_SECONDS", 300)
ECHO_PATIENCE_SECONDS = environment.positive("ECHO_PATIENCE_SECONDS", 30)
FEED_AHEAD_SECONDS = environment.positive("FEED_AHEAD_SECONDS", 40)
# A scheduled broadcast whose start an outage delayed by more is held for a person.
LATE_START_HOURS = environment.positive("LATE_START_HOURS", 6)
# Multiplies every gap; below 1 a number is driven faster than its rules (messaging.W001 warns).
PACE_SCALE = environment.positive("PACE_SCALE", 1)
BEAT_SECONDS = environment.counting("BEAT_SECONDS", 60)
WEBHOOK_RETENTION_DAYS = environment.counting("WEBHOOK_RETENTION_DAYS", 90)
# Who scrapes /metrics from elsewhere shows it; without one only this machine may.
METRICS_TOKEN = environment.text("METRICS_TOKEN")
# Tests of crashes kill the process at a named point: "after_gate_commit", or "after_gate_commit:3".
FAULT_POINT = environment.text("FAULT_POINT")

# Composition: what a room below asks for and a room above, or another system, provides.
AUDIT_RECORDER = "events.services.record"
CONTACT_REFERENCES = ["broadcasts.references.FrozenPeople"]
STREAM_OWNER = "broadcasts.owning.OwnStreams"
PEOPLE_DIRECTORY = "permissions.directory.DatabaseDirectory"
CHANNEL_ADAPTERS = {"waha": "channels_waha.adapter.WahaAdapter"}

# WAHA
WAHA_BASE_URL = environment.url("WAHA_BASE_URL")
WAHA_API_KEY = environment.text("WAHA_API_KEY")
environment.both_or_neither("WAHA_BASE_URL", "WAHA_API_KEY")
WAHA_LIFECYCLE_TIMEOUT_SECONDS = environment.positive("WAHA_LIFECYCLE_TIMEOUT_SECONDS", 45)
WAHA_TYPING_SECONDS = environment.whole("WAHA_TYPING_SECONDS", 0)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "permissions.api.authentication.ApiKeyAuthentication",
        "permissions.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["permissions.api.permissions.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["permissions.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "permissions.api.negotiation.Negotiation",
    "DEFAULT_THROTTLE_CLASSES": ["permissions.api.throttling.CallerRate"],
    "DEFAULT_SCHEMA_CLASS": "permissions.api.schema.Schema",
    "EXCEPTION_HANDLER": "permissions.api.errors.handle",
    "UNICODE_JSON": True,
    "UNAUTHENTICATED_USER": None,
    # ?format= would be one more way to ask for what the Accept header says.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "broadcast",
    "VERSION": "1",
    "DESCRIPTION": "WhatsApp broadcasts and channels: paced, exactly once, audited. See docs/api.md.",
    "OAS_VERSION": "3.1.0",
    "DEFAULT_GENERATOR_CLASS": "permissions.api.schema.Generator",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATION_PARAMETERS": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["permissions.api.schema.add_common_parts"],
    "SERVERS": [{"url": PUBLIC_BASE_URL}],
    # What a check of the deployment would say of it is a test here (tests/permissions/test_schema.py).
    "ENABLE_DJANGO_DEPLOY_CHECK": False,
}
DRF_STANDARDIZED_ERRORS = {"EXCEPTION_FORMATTER_CLASS": "permissions.api.errors.Formatter"}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"redact": {"()": "permissions.logs.RedactingFilter"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["redact"]},
    },
    "root": {
        "handlers": ["console"],
        "level": environment.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
    },
    # Two lines a task, thousands of tasks a minute: the rows tell what happened.
    "loggers": {
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        # At DEBUG it prints paths, and those of look-ups hold phone numbers.
        "urllib3": {"level": "WARNING"},
        "django.server": {"handlers": ["console"], "propagate": False},
    },
}

UNFOLD = {
    "SITE_TITLE": "Broadcast",
    "SITE_HEADER": "Broadcast",
    "SITE_SYMBOL": "campaign",
    "SITE_URL": reverse_lazy("admin:index"),
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "SHOW_LANGUAGES": True,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("console/favicon.svg")}],
    "STYLES": [lambda _request: static("console/console.css")],
    "SCRIPTS": [lambda _request: static("console/live.js")],
    "DASHBOARD_CALLBACK": "broadcast_project.console.dashboard",
    "SIDEBAR": {"navigation": "broadcast_project.console.navigation"},
}
