"""The first answers to requests that carried an Idempotency-Key, and those that have only begun."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from permissions.ids import new_id
from permissions.models.base import TenantModel
from permissions.models.tenancy import User


class IdempotencyRecord(TenantModel):
    """One request. Answered ones are written in the transaction of their effect; only 2xx are kept.

    Where the effect needs the network the row is committed first, as started: it has no status yet.
    """

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(default=str)
    headers = models.JSONField(default=dict)
    # The id of what the request makes, drawn before it does: a retry makes the same thing.
    effect_id = models.UUIDField(default=new_id)
    attempts = models.PositiveIntegerField(default=1)
    # Of a started one: somebody is at it until then.
    busy_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    # None: as long as what it made exists (a broadcast); else it may be swept after this time.
    expires_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        db_table = "idempotency_records"
        constraints = [models.UniqueConstraint(fields=["organization", "owner", "key"], name="idempotency_key_once")]
        indexes = [models.Index(fields=["expires_at"], name="idempotency_expiry")]

    def __str__(self) -> str:
        return self.key
