"""Every URL of the installation, for tests that must forget none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` begins with a slash, its parameters in braces: ``/api/v1/broadcasts/{reference}``."""

    path: str
    view: Callable[..., Any]

    @property
    def view_class(self) -> Any:
        """The class of the view; None of a function."""
        return getattr(self.view, "view_class", getattr(self.view, "cls", None))

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)

    def handler(self, method: str) -> Any:
        """What answers a method; None where nothing does."""
        return getattr(self.view_class, method.lower(), None)


def routes(*beginnings: str) -> list[Route]:
    """The routes whose path begins with one of these."""
    found = list(_walk(get_resolver().url_patterns, "/"))
    return [route for route in found if route.path.startswith(beginnings)]


def _walk(patterns: list[Any], before: str) -> Iterator[Route]:
    for pattern in patterns:
        path = before + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield Route(path, pattern.callback)
