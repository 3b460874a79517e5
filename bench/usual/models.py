"""One table for those who get a message, and one for raw webhooks."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models


class Recipient(models.Model):
    """The usual row: a phone, a text, a status that the task sets."""

    objects: ClassVar[models.Manager[Self]] = models.Manager()
    phone = models.CharField(max_length=32)
    text = models.TextField()
    status = models.CharField(max_length=16, default="pending", db_index=True)
    wa_message_id = models.CharField(max_length=128, blank=True)
    sent_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "bench_recipients"

    def __str__(self) -> str:
        return self.phone


class RawWebhook(models.Model):
    """What a bare view keeps of a webhook: its body."""

    objects: ClassVar[models.Manager[Self]] = models.Manager()
    body = models.BinaryField()
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "bench_raw_webhooks"

    def __str__(self) -> str:
        return str(self.pk)
