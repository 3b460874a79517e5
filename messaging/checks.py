"""System checks of the engine's settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags, register

from messaging.faults import Point


@register(Tags.security, deploy=True)
def check_pace(**_options: Any) -> list[CheckMessage]:
    """No installation drives numbers faster than the rules by oversight."""
    if settings.PACE_SCALE >= 1:
        return []
    hint = "Unset PACE_SCALE. It is below 1 in tests against the simulator only."
    return [checks.Warning("PACE_SCALE drives numbers faster than the anti-ban rules.", hint=hint, id="messaging.W001")]


@register()
def check_fault_point_name(**_options: Any) -> list[CheckMessage]:
    """A point that does not exist would let a test of crashes pass without a crash."""
    name, _, nth = settings.FAULT_POINT.partition(":")
    if not name or (name in set(Point) and (not nth or nth.isdecimal())):
        return []
    return [
        checks.Error(f"FAULT_POINT names no point: {name}", hint="See messaging.faults.Point.", id="messaging.E001")
    ]


@register(Tags.security, deploy=True)
def check_fault_point(**_options: Any) -> list[CheckMessage]:
    """No installation kills its own workers."""
    if not settings.FAULT_POINT:
        return []
    return [checks.Warning("FAULT_POINT kills the process at a named point.", hint="Unset it.", id="messaging.W002")]
