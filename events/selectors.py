"""Reads of what happened."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from events.models import Event


def trail(organization_id: UUID) -> QuerySet[Event]:
    """Everything of one organization, newest first."""
    return Event.objects.filter(organization_id=organization_id).order_by("-created_at", "-id")


def of_subject(organization_id: UUID, subject: str) -> QuerySet[Event]:
    """What happened to one thing (a prefixed id), newest first."""
    return trail(organization_id).filter(subject=subject)


def of_type(organization_id: UUID, prefix: str) -> QuerySet[Event]:
    """One type (``broadcast.paused``) or a family of them (``broadcast.``), newest first."""
    events = trail(organization_id)
    return events.filter(type__startswith=prefix) if prefix.endswith(".") else events.filter(type=prefix)
