"""API keys: only a digest of the secret is stored."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions.models.base import TenantModel
from permissions.models.tenancy import User


class Scope(models.TextChoices):
    """What a key may do (contract: General)."""

    BROADCAST_SEND = "broadcast:send", _("send broadcasts")
    BROADCAST_READ = "broadcast:read", _("read broadcasts")
    MESSAGES_SEND = "messages:send", _("send messages")
    MESSAGES_READ = "messages:read", _("read messages")
    CONTACTS_WRITE = "contacts:write", _("change contacts")
    CONTACTS_READ = "contacts:read", _("read contacts")
    CHANNELS_MANAGE = "channels:manage", _("manage numbers")
    WEBHOOKS_MANAGE = "webhooks:manage", _("manage webhooks")


def default_scopes() -> list[str]:
    return [Scope.BROADCAST_SEND.value]


class ApiKey(TenantModel):
    """``cbk_<public_id>_<secret>``; the secret is shown once and never stored.

    After a rotation the secret before works on until ``previous_expires_at``, under the same public id.
    """

    class State(models.TextChoices):
        ACTIVE = "active", _("active")
        EXPIRED = "expired", _("expired")
        REVOKED = "revoked", _("revoked")

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys", verbose_name=_("owner"))
    name = models.CharField(_("name"), max_length=120)
    public_id = models.CharField(_("key id"), max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    previous_digest = models.CharField(max_length=64, blank=True, editable=False)
    previous_expires_at = models.DateTimeField(_("old secret works until"), null=True, blank=True, editable=False)
    rotated_at = models.DateTimeField(_("rotated at"), null=True, blank=True, editable=False)
    scopes = ArrayField(
        models.CharField(max_length=32, choices=Scope.choices),
        default=default_scopes,
        verbose_name=_("scopes"),
    )
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "broadcast_api_keys"
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    def state_at(self, now: datetime) -> State:
        """What the key itself allows; its owner may have lost his place beside that."""
        if self.revoked_at is not None:
            return self.State.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return self.State.EXPIRED
        return self.State.ACTIVE
