"""JSON that can be read in one way only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import IO, Any, NoReturn

from django.utils.http import parse_header_parameters
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, UnsupportedMediaType, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from permissions.api.refusals import Unreadable

MAX_DEPTH = 50
_UTF8 = frozenset({"utf-8", "utf8", "us-ascii"})


class StrictJSONParser(BaseParser):
    """RFC 8259 in UTF-8: no NaN, no duplicate names, no NUL or lone surrogate, nesting up to 50.

    Raises ParseError (``parse_error``) for what is no JSON, and ValidationError that names the field for
    what is JSON and can't be taken: ``duplicate_field``, ``nesting_too_deep``,
    ``null_characters_not_allowed``, ``surrogate_characters_not_allowed``. All are 400.
    """

    media_type = "application/json"
    renderer_class = JSONRenderer

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 - DRF's signature
    ) -> Any:
        _require_utf8(media_type or "")
        return loads(stream.read())


def loads(raw: bytes) -> Any:
    """The value of a JSON text; raises as StrictJSONParser says."""
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise _too_deep("") from None
    except ValueError:
        # Also what is no UTF-8, and numbers of thousands of digits.
        raise ParseError(_("The body is not valid JSON.")) from None
    _inspect(value)
    return value


def _require_utf8(media_type: str) -> None:
    _kind, parameters = parse_header_parameters(media_type)
    if parameters.get("charset", "utf-8").lower() not in _UTF8:
        raise UnsupportedMediaType(media_type)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _value in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Unreadable("duplicate_field", _("This field appears twice."), twice)
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond every float")
    return number


def _no_constant(_text: str) -> NoReturn:
    raise ValueError("no JSON")


def _inspect(value: Any) -> None:
    """Refuse what is nested too deep or holds characters that no database takes; without recursion."""
    open_values: list[tuple[str, int, Any]] = [("", 1, value)]
    while open_values:
        path, depth, current = open_values.pop()
        if isinstance(current, str):
            _inspect_text(path, current)
        elif isinstance(current, dict | list):
            if depth > MAX_DEPTH:
                raise _too_deep(path)
            open_values += ((name, depth + 1, item) for name, item in _items(path, current))


def _items(path: str, container: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    start = f"{path}." if path else ""
    if isinstance(container, list):
        yield from ((f"{start}{place}", item) for place, item in enumerate(container))
        return
    for name, item in container.items():
        _inspect_text(f"{start}{name}", name)
        yield f"{start}{name}", item


def _inspect_text(path: str, text: str) -> None:
    if "\x00" in text:
        raise Unreadable("null_characters_not_allowed", _("Null characters are not allowed."), path or None)
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        detail = _("Lone surrogates are not allowed.")
        raise Unreadable("surrogate_characters_not_allowed", detail, path or None)


def _too_deep(path: str) -> ValidationError:
    attr = ".".join(path.split(".")[:1]) or None
    return Unreadable("nesting_too_deep", _("The body is nested too deep."), attr)
