"""People, the ways to reach them, and the groups they are in."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions.models import Team, TenantModel, User


class Contact(TenantModel):
    """A person as one organization knows him.

    ``identity`` is the canonical phone (Brazilian mobile with the 9, Mexico 52, Argentina 549); every
    spelling seen is a ContactAddress. A contact known only by a LID has no identity yet.
    """

    identity = models.CharField(_("phone"), max_length=20, null=True, blank=True)  # noqa: DJ001 - null: no phone known
    name = models.CharField(_("name"), max_length=255, blank=True)
    external_id = models.CharField(_("external id"), max_length=128, null=True, blank=True)  # noqa: DJ001
    attributes = models.JSONField(_("attributes"), default=dict, blank=True)
    # What a person may be sent has this one place: automatic sends stop while blocked or on hold.
    is_blocked = models.BooleanField(_("blocked"), default=False)
    blocked_at = models.DateTimeField(_("blocked at"), null=True, blank=True, editable=False)
    blocked_reason = models.CharField(_("reason of the block"), max_length=200, blank=True, editable=False)
    is_on_hold = models.BooleanField(_("on hold"), default=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta(TenantModel.Meta):
        db_table = "contacts"
        verbose_name = _("contact")
        verbose_name_plural = _("contacts")
        constraints = [
            models.UniqueConstraint(fields=["organization", "identity"], name="contact_identity_once"),
            models.UniqueConstraint(fields=["organization", "external_id"], name="contact_external_id_once"),
        ]

    def __str__(self) -> str:
        return self.name or (f"+{self.identity}" if self.identity else str(self.pk))


class ContactAddress(TenantModel):
    """One spelling of a person: what came from WhatsApp is kept beside the identity, not over it."""

    class Kind(models.TextChoices):
        PHONE = "phone", _("phone")
        LID = "lid", "LID"
        BSUID = "bsuid", "BSUID"

    contact = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="addresses", verbose_name=_("contact"))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    value = models.CharField(_("value"), max_length=128)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "contact_addresses"
        verbose_name = _("address")
        verbose_name_plural = _("addresses")
        constraints = [models.UniqueConstraint(fields=["organization", "kind", "value"], name="contact_address_once")]

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


class MergedContact(TenantModel):
    """Where a contact went that turned out to be another's double; ``id`` is the one it had.

    Whoever kept the old id, or the external id that only one of the two could keep, is led to the person.
    """

    contact = models.ForeignKey(
        Contact, on_delete=models.CASCADE, related_name="merged_contacts", verbose_name=_("contact")
    )
    external_id = models.CharField(_("external id"), max_length=128, null=True)  # noqa: DJ001 - null: it had none
    created_at = models.DateTimeField(_("time"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "merged_contacts"
        verbose_name = _("merged contact")
        verbose_name_plural = _("merged contacts")
        indexes = [
            models.Index(
                fields=["organization", "external_id"],
                condition=models.Q(external_id__isnull=False),
                name="merged_by_external_id",
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)


class Group(TenantModel):
    """An audience: owned by a team, whose active leaders may write to it, or by a person."""

    external_id = models.CharField(
        _("external id"), max_length=128, help_text=_("The id by which your own system names the group.")
    )
    name = models.CharField(_("name"), max_length=200)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("team")
    )
    owner = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("owner")
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "groups"
        verbose_name = _("group")
        verbose_name_plural = _("groups")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["organization", "external_id"], name="group_external_id_once")]

    def __str__(self) -> str:
        return self.name


class GroupMember(TenantModel):
    """A line of a group, with the phone as it was given; ``contact`` is null where that is no phone."""

    class Status(models.TextChoices):
        ACTIVE = "ACTIVE", _("active")
        INACTIVE = "INACTIVE", _("inactive")

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="members", verbose_name=_("group"))
    contact = models.ForeignKey(
        Contact,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memberships",
        verbose_name=_("contact"),
    )
    given_phone = models.CharField(_("phone as given"), max_length=255)
    name = models.CharField(_("name"), max_length=255, blank=True)
    status = models.CharField(_("status"), max_length=8, choices=Status.choices, default=Status.ACTIVE)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "group_members"
        verbose_name = _("member")
        verbose_name_plural = _("members")
        constraints = [models.UniqueConstraint(fields=["group", "given_phone"], name="group_member_once")]

    def __str__(self) -> str:
        return self.name or self.given_phone


class ConsentEvent(TenantModel):
    """The ledger of what a person allowed, append-only; ``Contact.is_blocked`` is its present sum."""

    class Kind(models.TextChoices):
        BLOCKED = "blocked", _("blocked")
        UNBLOCKED = "unblocked", _("unblocked")
        HELD = "held", _("put on hold")
        RELEASED = "released", _("released from hold")

    contact = models.ForeignKey(
        Contact, on_delete=models.CASCADE, related_name="consent_events", verbose_name=_("contact")
    )
    kind = models.CharField(_("kind"), max_length=12, choices=Kind.choices)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    actor = models.CharField(_("actor"), max_length=64)
    created_at = models.DateTimeField(_("time"), default=timezone.now, db_default=Now())

    class Meta(TenantModel.Meta):
        db_table = "consent_events"
        verbose_name = _("consent event")
        verbose_name_plural = _("consent events")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.get_kind_display()
