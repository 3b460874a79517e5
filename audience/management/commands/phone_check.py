"""`manage.py phone_check`: what the product makes of a number, one line each."""

import io
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audience import phones

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8})|([nrt0\\]))")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}


class Command(BaseCommand):
    help = "Print each number's canonical digits, or REJECT:reason, a tab and the explanation."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("numbers", nargs="*", metavar="NUMBER")
        parser.add_argument("--region", default="BR", help="country of whoever wrote them (ISO)")
        parser.add_argument("--stdin", action="store_true", help="read one number per line")
        parser.add_argument("--unescape", action="store_true", help=r"read \uXXXX, \n and the like")

    def handle(self, *_args: Any, **options: Any) -> None:
        numbers: list[str] = options["numbers"]
        if bool(numbers) == options["stdin"]:
            raise CommandError("Give numbers, or --stdin to read them, and not both.")
        region: str = options["region"]
        for number in _lines_of_stdin() if options["stdin"] else numbers:
            text = unescape(number) if options["unescape"] else number
            try:
                finding = phones.explain(text, region=region)
            except ValueError as error:
                raise CommandError(str(error)) from error
            self.stdout.write(f"{finding.verdict}\t{finding.explanation}")


def unescape(text: str) -> str:
    r"""Read `\uXXXX`, `\UXXXXXXXX`, `\xXX`, `\n`, `\r`, `\t`, `\0` and `\\`; else verbatim."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    simple = match[4]
    if simple is not None:
        return _SIMPLE[simple]
    point = int(match[1] or match[2] or match[3], 16)
    return chr(point) if point <= sys.maxunicode else match[0]


def _lines_of_stdin() -> Iterator[str]:
    stream: Iterable[str] = sys.stdin
    if isinstance(stream, io.TextIOWrapper):
        # A stray byte becomes a surrogate, hence REJECT:chars; it never ends the run.
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    for line in stream:
        yield line.rstrip("\r\n")
