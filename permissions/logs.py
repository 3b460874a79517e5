"""What the log never shows: keys, secrets, HMACs, and the data that database errors quote."""

from __future__ import annotations

import logging
import re
import traceback

_SECRETS = (
    # An API key keeps its public part, so that a line can still be told whose it is.
    (re.compile(r"\b(cbk_[a-z0-9]{8})_[A-Za-z0-9_-]{10,}"), r"\1_[redacted]"),
    (
        re.compile(
            r"(?i)\b(authorization|x-api-key|x-webhook-hmac|x-hub-signature-256)(['\"]?\s*[:=]\s*['\"]?)[^\s'\",}]+(\s+[A-Za-z0-9._~+/=-]{16,})?"
        ),
        r"\1\2[redacted]",
    ),
    (re.compile(r"(?i)\b(api[_-]?key|token|secret|password|hmac)(=)[^\s&'\"]+"), r"\1\2[redacted]"),
    # A SHA-512 in hex, whatever it is called.
    (re.compile(r"\b[0-9a-fA-F]{128}\b"), "[redacted]"),
    (re.compile(r"://([^/\s:@]*):[^/\s@]+@"), r"://\1:[redacted]@"),
)


def redact(text: str) -> str:
    """The text without secrets, on one line: what people wrote can't forge a line of the log."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text.replace("\r", "\\r").replace("\n", "\\n")


class RedactingFilter(logging.Filter):
    """Formats each record once, redacted. It drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(record.getMessage())
        record.args = None
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = _stack(record.exc_info[1])
            record.exc_info = None
        return True


def _stack(error: BaseException) -> str:
    """The stacks of an error and its causes; of each message the first line, for the rest quotes data."""
    chain: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        first_line = (str(current).splitlines() or [""])[0]
        frames = "".join(traceback.format_tb(current.__traceback__))
        chain.append(f"{frames}{type(current).__name__}: {redact(first_line)}")
        current = current.__cause__ or current.__context__
    return "\n\n".join(reversed(chain))
