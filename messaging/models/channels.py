"""Sender numbers, and the single file in which each one's messages leave."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from messaging.models.limits import RuleOverrides
from permissions.models import Organization, TenantModel


class Channel(RuleOverrides, TenantModel):
    """A sender number: facts and rules about it. How fast it goes now is its Lane's."""

    class State(models.TextChoices):
        DISCONNECTED = "disconnected", _("disconnected")
        CONNECTED = "connected", _("connected")
        ARCHIVED = "archived", _("archived")

    kind = models.CharField(_("kind"), max_length=16)
    name = models.CharField(_("name"), max_length=120)
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.DISCONNECTED)
    is_default = models.BooleanField(_("default of its kind"), default=False)
    first_connected_at = models.DateTimeField(_("first connected at"), null=True, blank=True, editable=False)
    # An older date that a super-admin declares: a shop's own number is usually years old.
    in_use_since = models.DateField(_("in use since"), null=True, blank=True, editable=False)
    # Warmed by conversations, and barred from broadcasts until it takes over from another.
    is_reserve = models.BooleanField(_("reserve"), default=False, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "channels"
        verbose_name = _("number")
        verbose_name_plural = _("numbers")
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "kind"],
                condition=models.Q(is_default=True),
                name="channel_one_default_per_kind",
            )
        ]

    def __str__(self) -> str:
        return self.name


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Lane(models.Model):
    """The engine's view of a channel: narrow, hot, and written by the engine's statements alone.

    Times are compared with the database's clock. The epoch stands for "long ago".
    """

    channel = models.OneToOneField(Channel, primary_key=True, on_delete=models.CASCADE, related_name="lane")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    connected = models.BooleanField()
    next_at = models.DateTimeField(null=True)
    busy_message = models.UUIDField(null=True)
    busy_until = models.DateTimeField(null=True)
    lease = models.BigIntegerField()
    any_at = models.DateTimeField()
    broadcast_at = models.DateTimeField()
    # Figures of messaging.policy, in seconds and messages.
    # Messages a second where the channel is not serial (engine_reserve); null: one in flight.
    rate = models.FloatField(null=True)
    gap = models.FloatField()
    gap_jitter = models.FloatField()
    broadcast_gap = models.FloatField()
    broadcast_gap_jitter = models.FloatField()
    slowdown = models.FloatField(db_default=1.0)
    open_from = models.DateTimeField()
    open_until = models.DateTimeField()
    day_starts_at = models.DateTimeField()
    day_ends_at = models.DateTimeField()
    cap_soft = models.IntegerField()
    cap_hard = models.IntegerField()
    cap_new = models.IntegerField(db_default=0)
    # Why no broadcast leaves, and why nobody new is written to; empty where nothing forbids it.
    barred = models.CharField(max_length=40, db_default="")
    barred_until = models.DateTimeField(null=True)
    restricted = models.CharField(max_length=40, db_default="")
    restricted_until = models.DateTimeField(null=True)
    # From then on other figures hold. The epoch: they are out of date already.
    figures_until = models.DateTimeField(db_default=EPOCH)
    used = models.IntegerField()
    # Of them, to people whom the organization never wrote to before.
    used_new = models.IntegerField(db_default=0)
    # Jitter still to be dealt, as fractions; and the gaps dealt for the message in flight.
    deck = ArrayField(models.FloatField())
    gap_now = models.FloatField()
    broadcast_gap_now = models.FloatField()
    holds = ArrayField(models.CharField(max_length=40))
    failures = models.IntegerField()

    class Meta:
        db_table = "lanes"
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(next_at__isnull=False, busy_message__isnull=True),
                name="lanes_due",
            ),
            models.Index(
                fields=["organization", "next_at"],
                condition=models.Q(next_at__isnull=False, busy_message__isnull=True),
                name="lanes_due_of_one",
            ),
            models.Index(fields=["busy_until"], condition=models.Q(busy_message__isnull=False), name="lanes_busy"),
        ]

    def __str__(self) -> str:
        return str(self.channel_id)

    def save(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError("lanes are written by messaging's statements")


class Stream(TenantModel):
    """What a broadcast looks like from the engine's side. Direct messages have none."""

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        CANCELED = "canceled", _("canceled")
        ENDED = "ended", _("ended")

    state = models.CharField(max_length=8, choices=State.choices)
    expires_at = models.DateTimeField(null=True)
    # Rules of its own, within those of the numbers: the least pause (seconds) between two of its messages on a
    # lane, and hours; null for none.
    gap = models.FloatField(null=True)
    window_opens = models.TimeField(null=True)
    window_closes = models.TimeField(null=True)
    # Figures of those hours: not before, and until; null where it has none.
    next_at = models.DateTimeField(null=True)
    open_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta(TenantModel.Meta):
        db_table = "streams"

    def __str__(self) -> str:
        return str(self.pk)
