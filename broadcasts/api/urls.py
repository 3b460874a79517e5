"""Under ``/api/v1``; without trailing slashes."""

from __future__ import annotations

from django.urls import path

from broadcasts.api.views import (
    ApproveView,
    BroadcastsView,
    BroadcastView,
    MoveView,
    PreviewView,
    RecipientsFileView,
    RecipientsView,
)

urlpatterns = [
    path("broadcasts", BroadcastsView.as_view(), name="broadcasts"),
    path("broadcasts/preview", PreviewView.as_view(), name="broadcast-preview"),
    path("broadcasts/<str:reference>", BroadcastView.as_view(), name="broadcast"),
    path("broadcasts/<str:reference>/recipients", RecipientsView.as_view(), name="broadcast-recipients"),
    path("broadcasts/<str:reference>/recipients.csv", RecipientsFileView.as_view(), name="broadcast-recipients-file"),
    path("broadcasts/<str:reference>/pause", MoveView.as_view(move="pause"), name="broadcast-pause"),
    path("broadcasts/<str:reference>/resume", MoveView.as_view(move="resume"), name="broadcast-resume"),
    path("broadcasts/<str:reference>/cancel", MoveView.as_view(move="cancel"), name="broadcast-cancel"),
    path("broadcasts/<str:reference>/approve", ApproveView.as_view(), name="broadcast-approve"),
    path(
        "broadcasts/<str:reference>/retry-failed",
        MoveView.as_view(move="retry-failed"),
        name="broadcast-retry-failed",
    ),
]
