"""Time zones by name."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _


def validate_time_zone(name: str) -> None:
    """Raise ValidationError unless ``name`` is a zone of the IANA database, such as America/Sao_Paulo."""
    # "Factory", "localtime" and the like are in the database and are no place.
    if name not in available_timezones() or ("/" not in name and name != "UTC"):
        raise ValidationError(_("%(name)s is not a time zone."), code="invalid_time_zone", params={"name": name})
