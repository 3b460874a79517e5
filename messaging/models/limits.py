"""What a tenant or a number changes of the rules, what WhatsApp restricts, and what left on past days."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions.models import TenantModel


class RuleOverrides(models.Model):
    """Overrides of messaging.rules; null means the rule of the layer above. Written by messaging.limits."""

    gap = models.FloatField(_("pause between messages"), null=True, blank=True, editable=False)
    broadcast_gap = models.FloatField(_("pause between broadcast messages"), null=True, blank=True, editable=False)
    window_opens = models.TimeField(_("window opens"), null=True, blank=True, editable=False)
    # Equal to window_opens: open all day long.
    window_closes = models.TimeField(_("window closes"), null=True, blank=True, editable=False)
    sundays = models.BooleanField(_("Sundays"), null=True, blank=True, editable=False)
    # A country, or country and state ("BR-SP"); empty for none.
    holidays = models.CharField(_("holidays of"), max_length=6, null=True, blank=True, editable=False)  # noqa: DJ001
    daily_cap = models.PositiveIntegerField(_("daily cap"), null=True, blank=True, editable=False)
    new_share = models.PositiveSmallIntegerField(
        _("new people, % of the daily cap"),
        null=True,
        blank=True,
        editable=False,
        validators=[MaxValueValidator(100)],
    )
    broadcasts_from_day = models.PositiveSmallIntegerField(
        _("first day of broadcasts"),
        null=True,
        blank=True,
        editable=False,
        validators=[MinValueValidator(7), MaxValueValidator(14)],
    )
    # The fields above that a super-admin let stand as they are; of the others the tighter value holds.
    loosened = ArrayField(models.CharField(max_length=24), default=list, blank=True, editable=False)

    class Meta:
        abstract = True


class OrganizationRules(RuleOverrides, TenantModel):
    """The overrides of one organization, for all its numbers."""

    class Meta(TenantModel.Meta):
        db_table = "organization_rules"
        constraints = [models.UniqueConstraint(fields=["organization"], name="organization_rules_once")]

    def __str__(self) -> str:
        return str(self.organization_id)


class Restriction(TenantModel):
    """A signal of WhatsApp's that it restricts a number, from its first report to its end."""

    class Code(models.TextChoices):
        ERROR_463 = "error_463", _("WhatsApp refuses messages to new people (error 463)")
        TIME_LOCK = "time_lock", _("WhatsApp locks the number for a time")
        CAPPING = "capping", _("WhatsApp caps the number's messages")
        FAILURE_BURST = "failure_burst", _("many messages failed in a row")
        SESSION_LOST = "session_lost", _("the session was lost while it was sending")

    channel = models.ForeignKey("messaging.Channel", on_delete=models.CASCADE, related_name="restrictions")
    code = models.CharField(max_length=24, choices=Code.choices)
    began_at = models.DateTimeField(default=timezone.now)
    # When it ends by itself, as far as anybody knows; and when it did end.
    ends_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        db_table = "restrictions"
        indexes = [models.Index(fields=["channel", "-began_at"], name="restrictions_by_channel")]
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "code"], condition=models.Q(ended_at__isnull=True), name="restriction_open_once"
            )
        ]

    def __str__(self) -> str:
        return self.code


class LaneDay(TenantModel):
    """What left by a number on a day that is over. Written as its lane begins the next one."""

    channel = models.ForeignKey("messaging.Channel", on_delete=models.CASCADE, related_name="+")
    began_at = models.DateTimeField()
    used = models.IntegerField()
    used_new = models.IntegerField()

    class Meta(TenantModel.Meta):
        db_table = "lane_days"
        constraints = [models.UniqueConstraint(fields=["channel", "began_at"], name="lane_day_once")]

    def __str__(self) -> str:
        return f"{self.channel_id} {self.began_at:%Y-%m-%d}"
