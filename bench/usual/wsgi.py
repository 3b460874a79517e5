"""The bare view under a WSGI server. DJANGO_SETTINGS_MODULE names bench.usual.settings."""

from __future__ import annotations

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
