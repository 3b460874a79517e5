"""What the log never shows: keys, secrets, HMACs, and the data that database errors quote."""

from __future__ import annotations

import logging
import re
import traceback
from contextvars import ContextVar

# The id of the request that is being answered, for the lines that are written meanwhile.
request_id: ContextVar[str] = ContextVar("request_id", default="-")

# A line is cut where no person reads on; what a pattern costs then has a bound, too.
MAX_LENGTH = 8000

# In order. No pattern can take the same characters in two ways, so each is linear in the text.
_SECRETS = (
    # An API key keeps its public part, so that a line can still be told whose it is.
    (re.compile(r"(cbk_[a-z0-9]{8})_[A-Za-z0-9_-]{10,}"), r"\1_[redacted]"),
    # The user and password of an address: from "://" to the last "@" of the authority.
    (re.compile(r"://[^/?#\s'\"]*@"), "://[redacted]@"),
    # Scheme and credentials of any kind, wherever they stand.
    (re.compile(r"(?i)\b(bearer|basic)(\s{1,4})[A-Za-z0-9._~+/=-]{6,}"), r"\1\2[redacted]"),
    (
        re.compile(r"(?i)(authorization['\"]?\s{0,3}[:=]\s{0,3}['\"]?[a-z0-9-]{1,20}\s{1,4})[^\s'\",\[]+"),
        r"\1[redacted]",
    ),
    # A header, or a member of a dict or a JSON text. In quotes, all up to the quote; else one word.
    (
        re.compile(
            r"(?i)((?:authorization|cookie|api[_-]?key|token|secret|password|passwd|hmac|signature"
            r"|x-hub-signature-256)['\"]?\s{0,3}[:=]\s{0,3})"
            r"(?!\s|\[redacted\]|(?:bearer|basic)\s{1,4}\[redacted\])"
            r"(?:b?'[^'\r\n]*'?|b?\"[^\"\r\n]*\"?|[^\s&'\",;)\]}]+)"
        ),
        r"\1[redacted]",
    ),
    # A SHA-512 or a SHA-256 in hex, whatever it is called.
    (re.compile(r"(?<![0-9A-Za-z])(?:sha\d{3}=)?(?:[0-9a-fA-F]{128}|[0-9a-fA-F]{64})(?![0-9A-Za-z])"), "[redacted]"),
)
# Whatever a terminal or a reader of logs takes for the end of a line, and what moves a terminal's cursor.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def redact(text: str) -> str:
    """The text without secrets, on one line: what people wrote can't forge a line of the log."""
    text = text[:MAX_LENGTH]
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text.translate(_CONTROLS)


class RedactingFilter(logging.Filter):
    """Formats each record once, redacted, and names its request. It drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        record.msg = redact(_message(record))
        record.args = None
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = _stack(record.exc_info[1])
            record.exc_info = None
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # A line whose arguments don't fit its words is worth less than the work it is about.
        return str(record.msg)


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
