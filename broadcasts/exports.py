"""The people of a broadcast as a file for a spreadsheet."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from broadcasts import outcomes, selectors
from broadcasts.models import Broadcast
from messaging import db

COLUMNS = (
    "recipient_id", "user_id", "contact_id", "phone", "status", "message_id", "wa_message_id", "error_code",
    "error_detail", "exclusion", "attempts", "updated_at",
)  # fmt: skip
# What others wrote; the rest are words and ids of ours.
_FROM_OUTSIDE = frozenset({"user_id", "phone", "wa_message_id", "error_code", "error_detail"})
# A Brazilian Excel opens a file of semicolons in columns; programs expect commas.
SEPARATORS = {"comma": ",", "semicolon": ";"}
TYPE = "text/csv; charset=utf-8"
_AT_ONCE = 2000
# What makes a spreadsheet compute a cell (OWASP: CSV injection): at its beginning, behind blanks of any kind; or
# behind a character that another spreadsheet takes for the end of a cell.
_SIGN = r"[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]"
_FORMULA = re.compile(rf"{_SIGN}|[\t\r\n]")
_FORMULA_INSIDE = re.compile(rf"([;,\t\r\n])(?={_SIGN})")


def headers(broadcast: Broadcast) -> dict[str, str]:
    """What the answer with the file says: its name, and that nobody between keeps a copy."""
    name = f"broadcast-{broadcast.public_id}-recipients.csv"
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}


def lines(broadcast: Broadcast, *, status: str | None = None, separator: str = ",") -> Iterator[bytes]:
    """The file in pieces, in UTF-8 with the mark by which Excel knows it; ``status`` is one of selectors.WORDS.

    Each piece is a short query of its own, from where the last one ended: however slowly somebody reads, no
    connection, transaction or snapshot waits for him, and memory holds one piece.
    """
    yield codecs.BOM_UTF8 + _encoded([COLUMNS], separator)
    with db.borrowed():
        last = selectors.last_position(broadcast)
    for after in range(0, last, _AT_ONCE):
        with db.borrowed():
            # Between two places, and no LIMIT: the planner knows nothing yet of a broadcast that was just made.
            people = list(selectors.outcomes_between(broadcast, after, after + _AT_ONCE, status=status))
            messages = selectors.messages_of(people)
        rows = (outcomes.row(person, messages.get(person.message_id)) for person in people)
        if people:
            yield _encoded([[_cell(column, row[column]) for column in COLUMNS] for row in rows], separator)


def safe(text: str) -> str:
    """The text as one that no spreadsheet computes; it stays readable: ``+5511…`` becomes ``'+5511…``."""
    mark = "'" if _FORMULA.match(text) else ""
    return mark + _FORMULA_INSIDE.sub(r"\1'", text)


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return safe(value) if column in _FROM_OUTSIDE else str(value)


def _encoded(rows: Any, separator: str) -> bytes:
    written = io.StringIO()
    csv.writer(written, delimiter=separator).writerows(rows)
    return written.getvalue().encode()
