"""A campaign: content, a frozen audience, a state."""

from __future__ import annotations

import secrets
import string
from datetime import datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audience.models import Group
from messaging.models import Channel, Stream
from permissions.models import ApiKey, TenantModel, User

# How long after its start a broadcast may still leave, unless it says otherwise (contract: Broadcasts).
VALID_FOR = timedelta(days=7)
_ALPHABET = string.ascii_letters + string.digits


def new_public_id() -> str:
    """Eight letters and digits: short enough to read out, not guessable in sequence."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


class Broadcast(TenantModel):
    """One campaign. Its counters are counted from the rows, never kept here."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        SCHEDULED = "scheduled", _("scheduled")
        PENDING_REVIEW = "pending_review", _("waiting for approval")
        SENDING = "sending", _("sending")
        PAUSED = "paused", _("paused")
        COMPLETED = "completed", _("completed")
        CANCELED = "canceled", _("canceled")
        FAILED = "failed", _("failed")

    public_id = models.CharField(_("code"), max_length=8, unique=True, default=new_public_id, editable=False)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", verbose_name=_("owner"))
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("API key")
    )
    group = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+", verbose_name=_("group"))
    stream = models.OneToOneField(Stream, on_delete=models.PROTECT, related_name="+")
    channels = models.ManyToManyField(Channel, through="Feed", related_name="+", verbose_name=_("numbers"))
    name = models.CharField(_("name"), max_length=120, blank=True)
    status = models.CharField(_("status"), max_length=16, choices=Status.choices)
    language = models.CharField(_("language"), max_length=16, default="pt_BR")
    template_name = models.CharField(_("template"), max_length=512, blank=True)
    variations = ArrayField(models.TextField(), default=list, verbose_name=_("variations"))
    variables = models.JSONField(_("variables"), default=dict)
    idempotency_key = models.CharField(max_length=255, null=True, editable=False)  # noqa: DJ001 - null: none given
    pause_code = models.CharField(max_length=40, blank=True)
    failure_code = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)
    started_at = models.DateTimeField(_("started at"), null=True, editable=False)
    finished_at = models.DateTimeField(_("finished at"), null=True, editable=False)
    scheduled_at = models.DateTimeField(_("scheduled for"), null=True, editable=False)
    # As it was asked for; else null until the start sets the default.
    expires_at = models.DateTimeField(_("expires at"), null=True, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "broadcasts"
        verbose_name = _("broadcast")
        verbose_name_plural = _("broadcasts")
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "owner", "idempotency_key"], name="broadcast_idempotency_key_once"
            )
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at"], name="broadcasts_by_time"),
            models.Index(
                fields=["status"],
                condition=models.Q(status__in=["queued", "scheduled", "pending_review", "sending", "paused"]),
                name="broadcasts_open",
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.public_id

    @property
    def ends_at(self) -> datetime:
        """Until when it may leave: as asked for, or by default after its start, known or foreseen."""
        return self.expires_at or (self.scheduled_at or self.created_at) + VALID_FOR


class Feed(TenantModel):
    """How far a broadcast has been fed into one number's lane."""

    broadcast = models.ForeignKey(Broadcast, on_delete=models.CASCADE, related_name="feeds")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+")
    # When to look again; null once nobody is left to feed.
    feed_at = models.DateTimeField(null=True, default=timezone.now)

    class Meta(TenantModel.Meta):
        db_table = "broadcast_feeds"
        constraints = [models.UniqueConstraint(fields=["broadcast", "channel"], name="feed_once")]
        indexes = [models.Index(fields=["feed_at"], condition=models.Q(feed_at__isnull=False), name="feeds_due")]

    def __str__(self) -> str:
        return f"{self.broadcast_id} → {self.channel_id}"
