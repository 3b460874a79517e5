"""Under ``/api/v1``; without trailing slashes."""

from __future__ import annotations

from django.urls import path

from messaging.api.views import MessageView, RetryView

urlpatterns = [
    path("messages/<str:reference>", MessageView.as_view(), name="message"),
    path("messages/<str:reference>/retry", RetryView.as_view(), name="message-retry"),
]
