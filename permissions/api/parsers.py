"""JSON that can be read in one way only."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any, NoReturn, TypeAlias

from django.utils.http import parse_header_parameters
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser, DataAndFiles, MultiPartParser
from rest_framework.renderers import JSONRenderer

from permissions.api.refusals import Unreadable

MAX_DEPTH = 50
# Where a value stands: what it is in, and its name there. A path is put together where one is told, and not
# for each value: under a name of half a megabyte there may be thousands.
_Place: TypeAlias = "tuple[_Place, str] | None"
# A string, closed or not, so that the search never starts again inside of one; or a bracket.
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)
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


class StrictMultiPartParser(MultiPartParser):
    """``multipart/form-data``, for the endpoints that take files; the texts beside them hold no NUL."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> DataAndFiles[Any, Any]:
        parsed = super().parse(stream, media_type, parser_context)
        _inspect({name: list(texts) for name, texts in parsed.data.lists()})
        return parsed


def loads(raw: bytes) -> Any:
    """The value of a JSON text; raises as StrictJSONParser says."""
    try:
        text = raw.decode("utf-8")
        _require_shallow(text)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except ValueError:
        # Also what is no UTF-8, and numbers of thousands of digits.
        raise ParseError(_("The body is not valid JSON.")) from None
    _inspect(value)
    return value


def _require_utf8(media_type: str) -> None:
    _kind, parameters = parse_header_parameters(media_type)
    if parameters.get("charset", "utf-8").lower() not in _UTF8:
        raise UnsupportedMediaType(media_type)


def _require_shallow(text: str) -> None:
    """Before it is parsed: the parser recurses in C, and on a small stack that ends the process."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise Unreadable("nesting_too_deep", _("The body is nested too deep."))


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
    """Refuse characters that no database takes."""
    open_values: list[tuple[_Place, Any]] = [(None, value)]
    while open_values:
        place, current = open_values.pop()
        if isinstance(current, str):
            _inspect_text(place, current)
        elif isinstance(current, list):
            open_values += (((place, str(number)), item) for number, item in enumerate(current))
        elif isinstance(current, dict):
            for name, item in current.items():
                inside = (place, name)
                _inspect_text(inside, name)
                open_values.append((inside, item))


def _inspect_text(place: _Place, text: str) -> None:
    if "\x00" in text:
        raise Unreadable("null_characters_not_allowed", _("Null characters are not allowed."), _path(place))
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        detail = _("Lone surrogates are not allowed.")
        raise Unreadable("surrogate_characters_not_allowed", detail, _path(place))


def _path(place: _Place) -> str | None:
    names: list[str] = []
    while place is not None:
        place, name = place
        names.append(name)
    return ".".join(reversed(names)) or None
