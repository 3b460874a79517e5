"""The raw log of webhooks, and the log of periodic runs."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from messaging.models.channels import Channel
from permissions.models import Organization


class WebhookEvent(models.Model):
    """What a provider posted, byte for byte. Only the columns of its processing ever change."""

    class State(models.TextChoices):
        RECEIVED = "received", _("received")
        APPLIED = "applied", _("applied")
        # Understood, and of no effect in this version: kept, and replayable by a later one.
        IGNORED = "ignored", _("ignored")
        ERROR = "error", _("error")
        DEAD = "dead", _("dead")

    id = models.BigAutoField(primary_key=True)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, null=True, related_name="+", verbose_name=_("organization")
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, null=True, related_name="+", verbose_name=_("number")
    )
    provider = models.CharField(_("provider"), max_length=16)
    request_id = models.CharField(_("request id"), max_length=128, blank=True)
    headers = models.JSONField(_("headers"), default=dict)
    body = models.BinaryField(_("body"))
    received_at = models.DateTimeField(_("received at"), default=timezone.now)
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.RECEIVED)
    event_type = models.CharField(_("type"), max_length=64, blank=True)
    attempts = models.SmallIntegerField(_("attempts"), default=0)
    next_try_at = models.DateTimeField(_("next try at"), null=True, default=timezone.now)
    applied_at = models.DateTimeField(_("applied at"), null=True)
    error = models.CharField(_("error"), max_length=300, blank=True)

    class Meta:
        db_table = "webhook_events_log"
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        indexes = [
            models.Index(
                fields=["organization", "channel", "id"],
                condition=models.Q(state__in=["received", "error"]),
                name="webhook_events_open",
            ),
            models.Index(fields=["organization", "-id"], name="webhook_events_by_org"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type or '?'} #{self.pk}"


class CronRun(models.Model):
    """One run of a periodic task."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=64)
    started_at = models.DateTimeField(_("started at"))
    finished_at = models.DateTimeField(_("finished at"), null=True)
    items_processed = models.IntegerField(_("items processed"), default=0)
    errors = models.JSONField(_("errors"), default=list)

    class Meta:
        db_table = "cron_runs"
        verbose_name = _("periodic run")
        verbose_name_plural = _("periodic runs")
        indexes = [models.Index(fields=["name", "-started_at"], name="cron_runs_by_name")]

    def __str__(self) -> str:
        return f"{self.name} {self.started_at:%Y-%m-%d %H:%M:%S}"
