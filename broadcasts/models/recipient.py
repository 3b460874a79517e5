"""One row per person of a broadcast, included or excluded with a reason."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audience.models import Contact
from broadcasts.models.broadcast import Broadcast
from messaging.models import Channel
from permissions.ids import new_id
from permissions.models import TenantModel


class Recipient(TenantModel):
    """A person as the broadcast froze him. What became of a fed one is his message's status."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        FED = "fed", _("in the queue")
        EXCLUDED = "excluded", _("excluded")
        SKIPPED = "skipped", _("skipped")
        CANCELED = "canceled", _("canceled")
        EXPIRED = "expired", _("expired")

    class Exclusion(models.TextChoices):
        INVALID_PHONE = "invalid_phone", _("the phone is not valid")
        DUPLICATE = "duplicate", _("the same person as another line")
        OPTED_OUT = "opted_out", _("asked to get nothing more")
        ON_HOLD = "contact_on_hold", _("on hold until somebody decides")
        MISSING_VARIABLE = "missing_variable", _("lacks a value that the text uses")
        TEXT_TOO_LONG = "text_too_long", _("the text would pass 4096 characters")

    broadcast = models.ForeignKey(
        Broadcast, on_delete=models.CASCADE, related_name="recipients", verbose_name=_("broadcast")
    )
    contact = models.ForeignKey(
        Contact, on_delete=models.SET_NULL, null=True, related_name="+", verbose_name=_("contact")
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, null=True, related_name="+", verbose_name=_("number")
    )
    # Frozen: never changes, not even when contacts are merged.
    person_key = models.CharField(max_length=64, blank=True)
    phone = models.CharField(_("phone"), max_length=255)
    name = models.CharField(_("name"), max_length=255, blank=True)
    position = models.BigIntegerField()
    # Drawn at the freeze; the primary key of the message once fed.
    message_id = models.UUIDField(_("message"), default=new_id)
    state = models.CharField(_("state"), max_length=8, choices=State.choices)
    code = models.CharField(_("reason"), max_length=40, blank=True)
    # Of a duplicate: the line that stands for the person.
    duplicate_of = models.CharField(_("duplicate of"), max_length=255, blank=True)
    updated_at = models.DateTimeField(_("updated at"), default=timezone.now)

    class Meta(TenantModel.Meta):
        db_table = "broadcast_recipients"
        verbose_name = _("recipient")
        verbose_name_plural = _("recipients")
        constraints = [
            models.UniqueConstraint(
                fields=["broadcast", "person_key"],
                condition=~models.Q(state="excluded"),
                name="recipient_person_once",
            ),
            models.UniqueConstraint(fields=["message_id"], name="recipient_message_once"),
        ]
        indexes = [
            models.Index(
                fields=["broadcast", "channel", "position"],
                condition=models.Q(state="pending"),
                name="recipients_to_feed",
            ),
            # Counters are read from it alone; what row security asks is a condition of the index, not of each row.
            models.Index(fields=["broadcast", "organization", "state", "channel"], name="recipients_by_state"),
            models.Index(fields=["broadcast", "position"], name="recipients_in_order"),
        ]

    def __str__(self) -> str:
        return self.name or self.phone
