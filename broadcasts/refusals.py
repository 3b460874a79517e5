"""Why a broadcast is not made or moved: domain errors, each with the contract's word."""

from __future__ import annotations


class Refused(Exception):
    """A rule refuses what was asked. ``code`` is stable; ``detail`` is for people and repeats no personal data.

    ``attr`` is the field that is meant (``variations.2``).
    """

    def __init__(self, code: str, detail: str, attr: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.attr = attr


class NotFound(Refused):
    """What was named does not exist in this organization."""


class Forbidden(Refused):
    """It exists, and this person may not."""


class InvalidTransition(Exception):
    """The broadcast's state does not allow this move."""

    def __init__(self, move: str, status: str) -> None:
        super().__init__(f"{move} is not possible in {status}")
        self.move = move
        self.status = status
