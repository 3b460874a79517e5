"""What every tenant's row has."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from permissions.ids import new_id
from permissions.managers import TenantManager


class Identified(models.Model):
    """A row known by a UUIDv7."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    class Meta:
        abstract = True


class TenantModel(Identified):
    """A row of one organization. ``unscoped`` is Django's own default manager (admin, relations)."""

    organization = models.ForeignKey(
        "permissions.Organization",
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("organization"),
    )

    unscoped: ClassVar[models.Manager[Self]] = models.Manager()
    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        abstract = True
        default_manager_name = "unscoped"
        base_manager_name = "unscoped"
