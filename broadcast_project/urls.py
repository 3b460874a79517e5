"""Every URL of the installation."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from broadcast_project import health, metrics
from permissions.api import reference

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="front"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/schema", reference.schema, name="api-schema"),
    path("api/v1/docs", reference.page, name="api-docs"),
    path("api/v1/", include("broadcasts.api.urls")),
    path("api/v1/", include("messaging.api.urls")),
    path("", include("channels_waha.api.urls")),
    path("health", health.alive, name="health"),
    path("health/ready", health.ready, name="ready"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler400 = "permissions.api.fallbacks.bad_request"
handler403 = "permissions.api.fallbacks.permission_denied"
handler404 = "permissions.api.fallbacks.page_not_found"
handler500 = "permissions.api.fallbacks.server_error"
