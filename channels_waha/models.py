"""WAHA's side of a number."""

from __future__ import annotations

import secrets

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from messaging.models import Channel
from permissions.encryption import EncryptedTextField
from permissions.models import TenantModel


def new_webhook_secret() -> str:
    return secrets.token_urlsafe(32)


class ChannelSession(TenantModel):
    """A WAHA session: one WhatsApp account linked as a device."""

    class Status(models.TextChoices):
        """WAHA's own words; unknown ones are stored as they come."""

        STOPPED = "STOPPED", _("stopped")
        STARTING = "STARTING", _("starting")
        SCAN_QR_CODE = "SCAN_QR_CODE", _("scan the QR code")
        WORKING = "WORKING", _("connected")
        FAILED = "FAILED", _("failed")

    channel = models.OneToOneField(
        Channel, on_delete=models.PROTECT, related_name="waha_session", verbose_name=_("number")
    )
    session_name = models.CharField(_("session name"), max_length=54, unique=True)
    display_name = models.CharField(_("name"), max_length=120)
    engine = models.CharField(_("engine"), max_length=16, default="NOWEB")
    # No choices: WAHA grows new words, and an unknown one is kept.
    status = models.CharField(_("status"), max_length=40, default=Status.STOPPED)
    status_changed_at = models.DateTimeField(_("status since"), default=timezone.now)
    # When the status was told, by WAHA's clock: webhooks come late and out of order.
    status_told_at = models.DateTimeField(null=True, blank=True, editable=False)
    # What was asked for through us: a stop asked for stays stopped.
    is_wanted = models.BooleanField(_("should run"), default=False)
    phone_number = models.CharField(_("phone number"), max_length=20, blank=True)
    server_version = models.CharField(_("WAHA version"), max_length=32, blank=True)
    webhook_secret = EncryptedTextField(default=new_webhook_secret, editable=False)
    previous_webhook_secret = EncryptedTextField(default="", blank=True, editable=False)
    last_health_check_at = models.DateTimeField(_("last check"), null=True, blank=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "channel_sessions"
        verbose_name = _("WhatsApp session")
        verbose_name_plural = _("WhatsApp sessions")
        ordering = ["display_name"]

    def __str__(self) -> str:
        return self.display_name
