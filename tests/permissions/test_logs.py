"""The log shows who did what, and never a secret or a line that somebody forged."""

from __future__ import annotations

import io
import logging
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from permissions import keys
from permissions.logs import MAX_LENGTH, RedactingFilter, redact

SECRET = "s3cr3t-Value_9x"
PHONE = "5511999990001"
HMAC = "0123456789abcdef" * 8


@pytest.mark.parametrize(
    "line",
    [
        f"Authorization: Bearer {SECRET}",
        f"Authorization: Bearer  {SECRET}",
        f"'Authorization': 'Bearer {SECRET}'",
        f"authorization={SECRET}",
        f'{{"Authorization": "Basic {SECRET}="}}',
        f"{{'HTTP_AUTHORIZATION': 'Bearer {SECRET}', 'a': 1}}",
        f"Authorization: Digest {SECRET}",
        f"header is bearer {SECRET}",
        f"X-Api-Key: {SECRET}",
        f"x_api_key='{SECRET}'",
        f"{{'X-Api-Key': '{SECRET}'}}",
        f'"api_key":"{SECRET}"',
        f"https://a.example/x?api_key={SECRET}&b=1",
        f"https://a.example/x?access_token={SECRET}",
        f"WAHA_API_KEY={SECRET}",
        f"password = '{SECRET} with blanks and {SECRET}'",
        f'"password": "{SECRET} with blanks {SECRET}"',
        f"DB_PASSWORD={SECRET}",
        f"secret={SECRET}",
        f"webhook_secret: {SECRET}",
        f"Cookie: sessionid={SECRET}",
        f"X-Webhook-Hmac: {HMAC}",
        f"got {HMAC}, wanted {HMAC.upper()}",
        f"X-Hub-Signature-256: sha256={HMAC[:64]}",
        f"signature {HMAC[:64]}",
        f"postgres://user:{SECRET}@db/name",
        f"redis://:{SECRET}@cache:6379/0",
        f"postgres://user:p@{SECRET}@db/name",
        f"https://{SECRET}@db/name",
        f"amqp://user:{SECRET}@[::1]:5672//",
        f"b'password={SECRET}'",
    ],
)
def test_a_secret_is_not_shown(line: str) -> None:
    shown = redact(line)

    assert SECRET not in shown
    assert HMAC[:64] not in shown.lower()
    assert "[redacted]" in shown


def test_a_key_keeps_the_part_that_names_it() -> None:
    made = keys.new()

    for text in (made.plain, f"Bearer {made.plain}", f"_{made.plain}", f"(key={made.plain})", f"x{made.plain}"):
        shown = redact(f"refused {text} for today")
        assert made.plain[13:] not in shown
        assert "[redacted]" in shown
    assert made.public_id in redact(f"refused {made.plain}")


@pytest.mark.parametrize(
    "line",
    [
        "broadcast bc_0199f0a0c7d07a3e8f2b0c1d2e3f4a5b is paused",
        "GET https://waha.example/api/sessions/loja_1?all=true 200",
        "the token is gone; no password is needed",
        "3EB0A1B2C3D4E5F60718 was sent at 12:00:00",
        "basic facts, bearer of news",
        "http://127.0.0.1:8000/admin/ ana@example.com",
        "tokens left: 12 of 80",
    ],
)
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert redact(line).replace("[redacted]", "") in {line, "tokens left:  of 80"}


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[2K", "\x85", "\u2028", "\u2029", "\x00"])
def test_nobody_forges_a_line(break_: str) -> None:
    shown = redact(f"name: Ana{break_}2026-12-01 INFO all is well")

    assert len(shown.splitlines()) == 1
    assert shown.isprintable()


@given(text=st.text())
def test_a_line_is_always_one(text: str) -> None:
    assert len(redact(text).splitlines()) <= 1


@pytest.mark.parametrize(
    "unit",
    ["cbk_", "cbk_a1b2c3d4_", "://", "://a:", "a@", "Bearer ", "bearer", "password=", "password='", "token: ", "0a",
     "sha256=", "'", '"', " ", "api_key", "authorization: bearer ", "\n"],
)  # fmt: skip
def test_redaction_takes_time_in_proportion_to_the_text(unit: str) -> None:
    """Unbounded lines, so that the cut does not hide a pattern that tries everything twice."""
    from permissions import logs

    def seconds(repeated: int) -> float:
        text = unit * repeated
        started = time.thread_time()
        for pattern, replacement in logs._SECRETS:
            text = pattern.sub(replacement, text)
        return time.thread_time() - started

    size = 20_000 // len(unit)
    # 64 times the text: linear is 64 times the time, quadratic would be 4096 times (with room for a busy cache).
    assert seconds(64 * size) < 700 * max(seconds(size), 0.0005)


def test_a_long_line_is_cut() -> None:
    assert len(redact("a" * 1_000_000)) == MAX_LENGTH


class Log:
    """A logger whose lines end in a text."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.addFilter(RedactingFilter())
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self.logger = logging.Logger("test")
        self.logger.addHandler(handler)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def log() -> Log:
    return Log()


def test_arguments_are_redacted_too(log: Log) -> None:
    log.logger.info("headers %s", {"Authorization": f"Bearer {SECRET}"})

    assert SECRET not in log.text
    assert log.text.startswith("INFO headers {'Authorization': ")


def test_a_line_with_wrong_arguments_is_kept(log: Log) -> None:
    arguments: tuple[Any, ...] = ("um", "dois")
    log.logger.info("one %s", *arguments)

    assert log.text == "INFO one %s\n"


def test_of_an_error_the_stack_is_kept_and_the_data_is_not(log: Log) -> None:
    try:
        try:
            raise ValueError(f"duplicate key\nDETAIL: Key (phone)=({PHONE}) password={SECRET}")
        except ValueError as error:
            raise RuntimeError(f"could not write with token={SECRET}") from error
    except RuntimeError:
        log.logger.exception("failed")

    assert "test_of_an_error_the_stack" in log.text
    assert "ValueError: duplicate key" in log.text
    assert "RuntimeError: could not write" in log.text
    assert PHONE not in log.text
    assert SECRET not in log.text


def test_errors_that_are_each_others_cause_end(log: Log) -> None:
    first, second = ValueError("um"), ValueError("dois")
    first.__cause__, second.__cause__ = second, first
    try:
        raise first
    except ValueError:
        log.logger.exception("failed")

    assert "um" in log.text
    assert "dois" in log.text
