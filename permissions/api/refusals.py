"""What a view raises to refuse a request.

400 says that a request cannot be read as its shape, 422 that it was read and a rule refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions, status


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a stable code, words for people, and the field (``variations.2``)."""

    code: str
    detail: str
    attr: str | None = None


class RuleViolation(exceptions.ValidationError):
    """422: the request was read, and a rule refuses it."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY

    def __init__(self, code: str, detail: str, attr: str | None = None) -> None:
        super().__init__(_details([Problem(code, detail, attr)]))

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> RuleViolation:
        """Several at once, in their order."""
        violation = cls("invalid", "")
        violation.detail = _details(problems)
        return violation


class Unreadable(exceptions.ValidationError):
    """400: the request cannot be read as its shape."""

    def __init__(self, code: str, detail: str, attr: str | None = None) -> None:
        super().__init__(_details([Problem(code, detail, attr)]))


class Conflict(exceptions.APIException):
    """409: the state of the thing does not allow it now. ``wait``: seconds until another try is worth it."""

    status_code = status.HTTP_409_CONFLICT

    def __init__(self, code: str, detail: str, *, wait: int | None = None) -> None:
        super().__init__(detail, code)
        self.wait = wait


class InvalidApiKey(exceptions.AuthenticationFailed):
    """401: one and the same answer, whatever is wrong with the key."""

    default_detail = _("A valid API key is needed.")
    default_code = "invalid_api_key"
    auth_header = "Bearer"


class InsufficientScope(exceptions.PermissionDenied):
    """403: the key may not do this."""

    default_detail = _("This key lacks the scope that is needed here.")
    default_code = "insufficient_scope"


class CsrfFailed(exceptions.PermissionDenied):
    """403: a write by session cookie without the token that proves where it comes from."""

    default_detail = _("The CSRF check failed.")
    default_code = "csrf_failed"


class LengthRequired(exceptions.APIException):
    """411: a body must say its length."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = _("A body needs a Content-Length.")
    default_code = "length_required"


class RequestTooLarge(exceptions.APIException):
    """413: the body is larger than this endpoint reads."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = _("The body is too large.")
    default_code = "request_too_large"


class TemporarilyUnavailable(exceptions.APIException):
    """503: the database did not answer in time; the same request may be sent again."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = _("The service is not available right now. Try again.")
    default_code = "temporarily_unavailable"
    wait = 5


def _details(problems: Iterable[Problem]) -> Any:
    by_attr: dict[str | None, list[exceptions.ErrorDetail]] = {}
    for problem in problems:
        detail = exceptions.ErrorDetail(problem.detail, problem.code)
        by_attr.setdefault(problem.attr, []).append(detail)
    # The formatter gives errors without a field no attr only where there is no mapping at all.
    return by_attr[None] if set(by_attr) == {None} else by_attr
