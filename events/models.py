"""What happened, by whom: append-only."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions.ids import new_id
from permissions.models import Organization


class Event(models.Model):
    """One thing that happened. Subjects are prefixed ids: no foreign key points upward.

    ``data`` names from/to where something moved; never a message's text, a key or a secret.
    """

    class Actor(models.TextChoices):
        USER = "user", _("user")
        API_KEY = "api_key", _("API key")
        SYSTEM = "system", _("system")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, null=True, related_name="+", verbose_name=_("organization")
    )
    type = models.CharField(_("type"), max_length=64)
    subject = models.CharField(_("subject"), max_length=64)
    actor_type = models.CharField(_("actor type"), max_length=8, choices=Actor.choices)
    actor = models.CharField(_("actor"), max_length=64, blank=True)
    data = models.JSONField(_("data"), default=dict)
    created_at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        db_table = "events"
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["organization", "-created_at"], name="events_by_time"),
            models.Index(fields=["subject", "-created_at"], name="events_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject}"

    def save(self, **options: Any) -> None:
        if not self._state.adding:
            raise TypeError("events are append-only")
        super().save(**options)

    def delete(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError("events are append-only")
