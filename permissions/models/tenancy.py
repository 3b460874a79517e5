"""Organizations, the people in them, and the teams that own groups."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from permissions.ids import new_id
from permissions.models.base import Identified, TenantModel
from permissions.zones import validate_time_zone


class Organization(Identified):
    """A tenant."""

    name = models.CharField(_("name"), max_length=120)
    slug = models.CharField(
        _("slug"),
        max_length=24,
        unique=True,
        # No underscore: session names are "<slug>_<n>" and must split at the first one.
        validators=[RegexValidator(r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", _("Lower-case letters, digits and hyphens."))],
    )
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="America/Sao_Paulo", validators=[validate_time_zone]
    )
    region = models.CharField(
        _("country"),
        max_length=2,
        default="BR",
        help_text=_("Two letters; numbers typed without a country code are read as numbers of it."),
    )
    review_threshold = models.PositiveIntegerField(
        _("recipients that need approval"),
        default=500,
        help_text=_("A broadcast to more people than this, over numbers that can be banned, waits for an admin."),
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta:
        db_table = "organizations"
        verbose_name = _("organization")
        verbose_name_plural = _("organizations")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):
    """A person who signs in. A superuser is the installation's super-admin."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    class Meta:
        db_table = "users"
        verbose_name = _("user")
        verbose_name_plural = _("users")


class Membership(TenantModel):
    """A person's place in an organization."""

    class Role(models.TextChoices):
        ADMIN = "admin", _("admin")
        ATTENDANT = "attendant", _("attendant")
        VIEWER = "viewer", _("viewer")

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("user"))
    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.VIEWER)
    is_active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "memberships"
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} · {self.get_role_display()}"


class Team(TenantModel):
    """People who answer for groups together."""

    name = models.CharField(_("name"), max_length=120)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "teams"
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="team_name_once")]

    def __str__(self) -> str:
        return self.name


class TeamMember(TenantModel):
    """A person's part in a team; an ACTIVE LEADER may broadcast to the team's groups."""

    class Role(models.TextChoices):
        LEADER = "LEADER", _("leader")
        MEMBER = "MEMBER", _("member")

    class Status(models.TextChoices):
        ACTIVE = "ACTIVE", _("active")
        INACTIVE = "INACTIVE", _("inactive")

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members", verbose_name=_("team"))
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="team_memberships", verbose_name=_("user"))
    role = models.CharField(_("role"), max_length=8, choices=Role.choices, default=Role.MEMBER)
    status = models.CharField(_("status"), max_length=8, choices=Status.choices, default=Status.ACTIVE)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    class Meta(TenantModel.Meta):
        db_table = "team_members"
        verbose_name = _("team member")
        verbose_name_plural = _("team members")
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="team_member_once")]

    def __str__(self) -> str:
        return f"{self.user} · {self.get_role_display()}"
