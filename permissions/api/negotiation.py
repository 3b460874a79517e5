"""Which form an answer has."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class Negotiation(DefaultContentNegotiation):
    """By ``Accept``; who asks for what an endpoint has not gets its usual form, never a 406 before his key is asked."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        known = list(renderers)
        try:
            renderer, media_type = super().select_renderer(request, known, format_suffix)
        except NotAcceptable:
            return known[0], str(known[0].media_type)
        return renderer, media_type
