"""The closed list of reasons: whole, in words, and with nothing beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation

from channels_waha import refusals
from channels_waha.adapter import WahaAdapter
from messaging import codes
from messaging.adapters import Fault
from messaging.words import words_of

ROOM = Path(refusals.__file__).parent
COSTING = {Fault.CONTENT, Fault.RECIPIENT}


@pytest.mark.parametrize("code", codes.all_codes())
def test_every_code_is_said_in_words(code: str) -> None:
    for language in ("en", "pt-br"):
        with translation.override(language):
            assert str(words_of(code)) != code


@pytest.mark.parametrize(
    ("stored", "outside"),
    [
        ("", None),
        ("expired", "expired"),
        ("waha_rejected", "waha_rejected"),
        ("ack_error", "ack_error"),
        ("ack_error_463", "ack_error"),
        ("something_new", "send_failed"),
    ],
)
def test_what_is_not_in_the_list_is_no_word_outside(stored: str, outside: str | None) -> None:
    assert codes.outside(stored) == outside


def raised() -> Iterator[str]:
    """Each code that WAHA's room raises as a fault of recipient or content."""
    for code, fault, _permanent in refusals._UNSENT.values():
        if fault in COSTING:
            yield code
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"ChannelError", "_unsent"}:
                said = ast.unparse(node)
                if any(f"Fault.{fault.name}" in said for fault in COSTING):
                    yield from (str(part.value) for part in node.args[:2] if isinstance(part, ast.Constant))


def test_wahas_list_is_what_its_room_raises() -> None:
    assert set(raised()) == WahaAdapter.error_codes
