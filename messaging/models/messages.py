"""Messages, and the receipts in which answers, echoes and acks meet."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from messaging.models.channels import Channel, Stream
from permissions.models import TenantModel


class Message(TenantModel):
    """One WhatsApp message, in or out.

    The id of a broadcast's message is drawn when its audience is frozen: feeding it twice conflicts and
    does nothing. ``status`` moves forward only; the chart is in docs/engine.md.
    """

    class Direction(models.TextChoices):
        OUT = "out", _("out")
        IN = "in", _("in")

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        CLAIMED = "claimed", _("claimed")
        SENDING = "sending", _("sending")
        SENT = "sent", _("sent")
        DELIVERED = "delivered", _("delivered")
        READ = "read", _("read")
        PLAYED = "played", _("played")
        FAILED = "failed", _("failed")
        IN_DOUBT = "in_doubt", _("in doubt")
        CANCELED = "canceled", _("canceled")
        EXPIRED = "expired", _("expired")
        SKIPPED = "skipped", _("skipped")
        RECEIVED = "received", _("received")

    class Origin(models.TextChoices):
        API = "api", "API"
        CONSOLE = "console", _("console")
        BROADCAST = "broadcast", _("broadcast")
        EXTERNAL_DEVICE = "external_device", _("sent by phone")

    class Priority(models.IntegerChoices):
        HUMAN = 0, _("human")
        AUTOMATIC = 1, _("automatic")
        BROADCAST = 2, _("broadcast")

    class Sent(models.TextChoices):
        """Whether a failed message may have left all the same."""

        NO = "no", _("certainly not sent")
        MAYBE = "maybe", _("may have been sent")

    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+", verbose_name=_("number"))
    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, null=True, related_name="+")
    # audience.Contact by id: the gate reads it in SQL; a merge moves it. Its index is messages_by_contact.
    contact = models.ForeignKey(
        "audience.Contact",
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("contact"),
    )
    direction = models.CharField(_("direction"), max_length=3, choices=Direction.choices)
    origin = models.CharField(_("sent via"), max_length=16, choices=Origin.choices, blank=True)
    type = models.CharField(_("type"), max_length=16, default="text")
    address = models.CharField(_("address"), max_length=128)
    text = models.TextField(_("text"), blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status.choices)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.BROADCAST)
    # Order in the lane: streams take turns, and within a turn the order of the audience holds.
    turn = models.BigIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    lease = models.BigIntegerField(null=True)
    attempt = models.SmallIntegerField(_("attempts"), default=0)
    # How many attempts failed by fault of recipient or content; only these are counted against the limit.
    faults = models.SmallIntegerField(default=0)
    # What ended each attempt that another may follow: {"attempt", "begun_at", "ended_at", "code", "sent": "no"}, a
    # definite "not sent"; or {"attempt", "at", "code", "decision": "send_again"}, a person's, at his risk.
    history = models.JSONField(default=list)
    # A person had it sent again while an attempt may have left: until there is evidence it never counts as unsent.
    doubted = models.BooleanField(default=False, db_default=False)
    # How many of the look-ups of this attempt were made (messaging.recovery).
    look_ups = models.SmallIntegerField(default=0, db_default=0)
    provider_id = models.CharField(_("WhatsApp id"), max_length=128, null=True)  # noqa: DJ001 - null: not known
    not_before = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    # As its gate saw it: the organization had never written to the person before, nor he to it.
    is_new_person = models.BooleanField(db_default=False)
    waiting_code = models.CharField(_("waits for"), max_length=40, blank=True)
    waiting_until = models.DateTimeField(null=True)
    error_code = models.CharField(_("error"), max_length=64, blank=True)
    error_detail = models.CharField(_("error detail"), max_length=300, blank=True)
    error_sent = models.CharField(max_length=5, choices=Sent.choices, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    sending_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(_("sent at"), null=True)
    delivered_at = models.DateTimeField(_("delivered at"), null=True)
    read_at = models.DateTimeField(_("read at"), null=True)
    updated_at = models.DateTimeField(_("updated at"), default=timezone.now)

    class Meta(TenantModel.Meta):
        db_table = "messages"
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        indexes = [
            models.Index(
                fields=["channel", "priority", "turn", "position"],
                condition=models.Q(status="queued"),
                name="messages_queue",
            ),
            # Few rows: what recovery and echo matching look at.
            models.Index(
                fields=["channel", "sending_at"],
                condition=models.Q(status__in=["sending", "in_doubt"]),
                name="messages_open",
            ),
            # Few rows: how often a number's messages fail.
            models.Index(fields=["channel", "updated_at"], condition=models.Q(status="failed"), name="messages_failed"),
            # What the slices of lanes that are not serial have in flight before the gate.
            models.Index(fields=["channel"], condition=models.Q(status="claimed"), name="messages_claimed"),
            # Counters are read from it alone; what row security asks is a condition of the index, not of each row.
            models.Index(fields=["stream", "organization", "status", "channel"], name="messages_by_stream"),
            # What a stream has already begun for a person.
            models.Index(fields=["contact", "stream"], name="messages_by_contact"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class Receipt(models.Model):
    """What is known of one provider id on one channel. Never deleted; a re-used id moves to the newer attempt.

    ``rank`` is the order of statuses (messaging.ranks); an ack may create the row before the answer does.
    """

    id = models.BigAutoField(primary_key=True)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")
    provider_id = models.CharField(max_length=128)
    message = models.ForeignKey(Message, on_delete=models.CASCADE, null=True, related_name="+")
    attempt = models.SmallIntegerField(default=0)
    rank = models.SmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "receipts"
        constraints = [models.UniqueConstraint(fields=["channel", "provider_id"], name="receipt_id_once")]
        indexes = [
            models.Index(fields=["created_at"], condition=models.Q(message__isnull=True), name="receipts_unmatched")
        ]

    def __str__(self) -> str:
        return self.provider_id
