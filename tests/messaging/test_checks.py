"""What `check --deploy` says of an engine that is set to hurt."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import checks


@pytest.mark.parametrize(
    ("setting", "value", "code"), [("PACE_SCALE", 0.5, "messaging.W001"), ("FAULT_POINT", "x", "messaging.W002")]
)
def test_a_dangerous_setting_is_warned_of(settings: object, setting: str, value: object, code: str) -> None:
    def codes() -> set[str | None]:
        return {found.id for found in checks.run_checks(tags=["security"], include_deployment_checks=True)}

    assert code not in codes()
    setattr(settings, setting, value)
    assert code in codes()


@pytest.mark.parametrize(
    ("value", "errors"), [("", 0), ("after_settle", 0), ("after_settle:3", 0), ("nonsense", 1), ("after_settle:x", 1)]
)
def test_a_fault_point_that_is_none_is_an_error(settings: Any, value: str, errors: int) -> None:
    settings.FAULT_POINT = value
    assert [found.id for found in checks.run_checks()].count("messaging.E001") == errors
