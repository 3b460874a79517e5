"""The page on broadcasts names every code that one can meet."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import pytest

from broadcasts import services
from broadcasts.codes import FailureCode, PauseCode, RiskCode, WaitingCode, WarningCode
from broadcasts.models import Broadcast

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "broadcasts.md").read_text()


@pytest.mark.parametrize(
    "code", [code for codes in (FailureCode, PauseCode, RiskCode, WaitingCode, WarningCode) for code in codes]
)
def test_every_code_is_on_the_page(code: Enum) -> None:
    assert f"`{code.value}`" in PAGE


def test_the_moves_are_those_of_the_code() -> None:
    rows = {
        row.split("`")[1]: row.split("|")[2]
        for row in PAGE.splitlines()
        if row.startswith("| `") and row.count("|") == 4
    }
    moves = {
        "pause": services.PAUSED_FROM,
        "cancel": services.OPEN,
        "retry-failed": services.RETRIED_IN,
        "approve": (Broadcast.Status.PENDING_REVIEW,),
        "resume": (Broadcast.Status.PAUSED,),
    }
    for move, states in moves.items():
        assert {word.strip() for word in rows[move].split(",")} == {state.value for state in states}
