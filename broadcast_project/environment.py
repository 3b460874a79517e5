"""Typed readers of environment variables; what can't be read is an error that names its variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

_env = environ.Env()
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})

Value = TypeVar("Value")


def text(name: str, default: str = "") -> str:
    """The variable without surrounding blanks; the default where it is unset or blank."""
    return str(_env.str(name, default="")).strip() or default


def flag(name: str) -> bool:
    """Off unless set to 1, true, yes or on."""
    value = text(name).lower()
    if value not in _TRUE | _FALSE:
        raise ImproperlyConfigured(f"{name} must be true or false")
    return value in _TRUE


def whole(name: str, default: int) -> int:
    """A whole number of 0 or more."""
    return _number(name, int, default, "a whole number of 0 or more", lambda value: value >= 0)


def counting(name: str, default: int) -> int:
    """A whole number of 1 or more."""
    return _number(name, int, default, "a whole number of 1 or more", lambda value: value >= 1)


def port(name: str, default: int) -> int:
    """A TCP port."""
    return _number(name, int, default, "a number from 1 to 65535", lambda value: 0 < value < 65536)


def choice(name: str, default: str, known: Collection[str]) -> str:
    """One of the known words, in any case."""
    value = text(name, default).upper()
    if value not in known:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(known)}")
    return value


def matching(name: str, default: str, pattern: str, kind: str) -> str:
    """A text of a form; ``kind`` says which, for whoever got it wrong."""
    value = text(name, default)
    if not re.fullmatch(pattern, value, re.ASCII):
        raise ImproperlyConfigured(f"{name} must be {kind}")
    return value


def database(name: str, default: str) -> dict[str, Any]:
    """A PostgreSQL database by its URL, as Django wants it."""
    value = text(name, default)
    if urlsplit(value).scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(f"{name} must name a PostgreSQL database (postgres://…)")
    try:
        return dict(environ.Env.db_url_config(value))
    except (ValueError, KeyError) as error:
        raise ImproperlyConfigured(f"{name} must name a PostgreSQL database (postgres://…)") from error


def positive(name: str, default: float) -> float:
    """A number greater than 0."""
    return _number(name, float, default, "a number greater than 0", lambda value: 0 < value < float("inf"))


def names(name: str, default: list[str]) -> list[str]:
    """A comma-separated list."""
    return [part.strip() for part in text(name).split(",") if part.strip()] or default


def url(name: str, default: str = "") -> str:
    """An absolute http(s) URL without a trailing slash."""
    value = text(name, default)
    try:
        parts = urlsplit(value)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if value and not valid:
        raise ImproperlyConfigured(f"{name} must be an http:// or https:// URL")
    return value.rstrip("/")


def both_or_neither(first: str, second: str) -> None:
    """Two variables that make sense only together."""
    for present, absent in ((first, second), (second, first)):
        if text(present) and not text(absent):
            raise ImproperlyConfigured(f"{present} is set, so {absent} is needed too")


def _number(
    name: str, read: Callable[[str], Value], default: Value, kind: str, valid: Callable[[Value], bool]
) -> Value:
    given = text(name)
    if not given:
        return default
    try:
        value = read(given)
    except ValueError:
        value = None
    if value is None or not valid(value):
        raise ImproperlyConfigured(f"{name} must be {kind}")
    return value
