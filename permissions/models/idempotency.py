"""The first answers to requests that carried an Idempotency-Key."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from permissions.models.base import TenantModel
from permissions.models.tenancy import User


class IdempotencyRecord(TenantModel):
    """One answered request. Written in the transaction of its effect; only 2xx are kept."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    # None: as long as what it made exists (a broadcast); else it may be swept after this time.
    expires_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        db_table = "idempotency_records"
        constraints = [models.UniqueConstraint(fields=["organization", "owner", "key"], name="idempotency_key_once")]
        indexes = [models.Index(fields=["expires_at"], name="idempotency_expiry")]

    def __str__(self) -> str:
        return self.key
