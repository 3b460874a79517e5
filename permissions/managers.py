"""Managers that make the query without a tenant the awkward one."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.db import models

Row = TypeVar("Row", bound=models.Model)


class UnscopedQuery(Exception):
    """Ask ``objects.of(organization)``; a query across tenants says so: ``Model.unscoped``."""


class TenantManager(models.Manager[Row]):
    """``Model.objects``: gives rows of one organization, and refuses to give any others."""

    def of(self, organization: models.Model | UUID) -> models.QuerySet[Row]:
        """The rows of one organization (the object or its id)."""
        key = organization.pk if isinstance(organization, models.Model) else organization
        return super().get_queryset().filter(organization_id=key)

    def create(self, **fields: Any) -> Row:
        """Insert one row; the organization is named like any other field."""
        if "organization" not in fields and "organization_id" not in fields:
            raise UnscopedQuery("a row needs its organization")
        row = self.model(**fields)
        row.save(force_insert=True)
        return row

    def get_queryset(self) -> models.QuerySet[Row]:
        raise UnscopedQuery(UnscopedQuery.__doc__)
