"""Serializers that take what the contract says and nothing else: no unknown field, no coerced type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError

from permissions import ids

Row = TypeVar("Row", bound=Model)

_UNKNOWN = _("This field is unknown.")
_ZONE = re.compile(r"(?:[Zz]|[+-]\d\d:\d\d)\Z")
_LARGEST = 2**63 - 1


class StrictSerializer(serializers.Serializer[Any]):
    """A body of the API. An unknown field is an ``unknown_field`` that names it, beside the other errors."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = self._unknown(data)
        try:
            value = super().to_internal_value(data)
        except ValidationError as error:
            known = cast("dict[str, Any]", error.detail)
            raise ValidationError({**known, **unknown}) from None
        if unknown:
            raise ValidationError(unknown)
        return value

    def _unknown(self, data: Any) -> dict[str, list[ErrorDetail]]:
        if not isinstance(data, Mapping):
            return {}
        writable = {name for name, field in self.fields.items() if not field.read_only}
        return {str(name): [ErrorDetail(str(_UNKNOWN), "unknown_field")] for name in data if name not in writable}


class TextField(serializers.CharField):
    """A JSON string; a number or a boolean is none."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class IntegerField(serializers.IntegerField):
    """A JSON number without fraction, of 64 bits."""

    def __init__(self, **options: Any) -> None:
        options = {"min_value": -_LARGEST - 1, "max_value": _LARGEST} | options
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class BooleanField(serializers.BooleanField):
    """``true`` or ``false``."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class TimeField(serializers.DateTimeField):
    """RFC 3339 with a zone; a time without one means another moment elsewhere."""

    default_error_messages = {"invalid": _("A time in RFC 3339 with its zone is needed.")}

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not _ZONE.search(value):
            self.fail("invalid", format="RFC 3339")
        return super().to_internal_value(value)


class PrefixedIdField(serializers.Field[UUID, str, str, Any]):
    """An id as it stands outside (``bc_…``); inside, its UUID."""

    default_error_messages = {"invalid_id": _("This is not an id of that kind.")}

    def __init__(self, prefix: str, **options: Any) -> None:
        self.prefix = prefix
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> UUID:
        value = ids.decode(self.prefix, data) if isinstance(data, str) else None
        if value is None:
            self.fail("invalid_id")
        return value

    def to_representation(self, value: Any) -> str:
        return ids.encode(self.prefix, value.pk if isinstance(value, Model) else value)


def get_or_404(rows: QuerySet[Row], prefix: str, text: str, *, code: str = "not_found") -> Row:
    """The row of a tenant-scoped queryset by its outside id; NotFound with ``code`` otherwise."""
    value = ids.decode(prefix, text)
    row = rows.filter(pk=value).first() if value else None
    if row is None:
        raise NotFound(code=code)
    return row
