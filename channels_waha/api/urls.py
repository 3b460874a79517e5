"""Addresses that WAHA calls."""

from __future__ import annotations

from django.urls import path

from channels_waha.api import webhooks

urlpatterns = [
    path("api/v1/webhooks/waha/<str:session_name>", webhooks.receive, name="waha-webhook"),
]
