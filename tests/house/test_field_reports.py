"""Each fault that people met with systems like this one has a test that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
# Texts, times, sending, counters.
CASES = [
    *(f"B{number:03}" for number in (97, 98, 100, 101, 103, 104, 106, 107)),
    *(f"B{number}" for number in (109, 110, 112, 113, 115, 116, 118, 119, 121)),
    *(f"B{number}" for number in (122, 124, 125, 127, 128, 130, 131, 133, 134, 136, 137, 139, 140, 143)),
    *(f"B{number}" for number in (145, 146, 148, 149, 151, 152)),
]
NAMED = {
    case
    for path in TESTS.rglob("test_*.py")
    if path != Path(__file__)
    for case in re.findall(r"\bB\d{3}\b", path.read_text())
}


@pytest.mark.parametrize("case", CASES)
def test_a_test_names_it(case: str) -> None:
    assert case in NAMED
