"""What every command of an operator does for him."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from permissions.management.base import OperatorCommand


class Lost(OperatorCommand):
    def handle(self, *_args: Any, **_options: Any) -> None:
        raise OperationalError("couldn't get a connection after 10.00 sec")


def test_a_database_that_does_not_answer_is_said_in_two_lines() -> None:
    with pytest.raises(CommandError) as caught:
        call_command(Lost())
    first, second = str(caught.value).splitlines()
    assert first == "couldn't get a connection after 10.00 sec"
    assert "migrate_locked" in second
