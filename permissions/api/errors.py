"""Errors as answers, in the one shape ``{"type", "errors": [{"code", "detail", "attr"}]}``."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext_lazy as _
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import Error, ExceptionHandlerContext
from rest_framework import exceptions, status
from rest_framework.response import Response

from permissions.api.refusals import InvalidApiKey, RequestTooLarge, TemporarilyUnavailable

# What a field's validator may find wrong with a value that was read well.
RULE_CODES = frozenset({"blank", "empty", "max_length", "max_value", "min_length", "min_value"})
# Where the packages' details would repeat what the caller wrote, or are no words of the reader's language.
_OUR_WORDS = {
    "invalid_choice": _("This is not one of the allowed values."),
    "method_not_allowed": _("This method is not allowed here."),
    "null": _("Null is not allowed here."),
    "throttled": _("Too many requests. Try again after the seconds that Retry-After says."),
    "unsupported_media_type": _("The body must be application/json in UTF-8."),
}
_MAX_ERRORS = 50
_MAX_ATTR = 200


class Formatter(ExceptionFormatter):
    """The package's own shape; what callers wrote is not repeated, and the answer stays short."""

    def get_errors(self) -> list[Error]:
        errors: list[Error] = super().get_errors()
        return [_cleaned(error) for error in errors[:_MAX_ERRORS]]


class Handler(ExceptionHandler):
    """Every exception of a view becomes an answer in JSON, in DEBUG too."""

    def should_not_handle(self, exc: Exception) -> bool:  # noqa: ARG002 - the package's signature
        return False

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        if isinstance(exc, exceptions.NotAuthenticated):
            return InvalidApiKey()
        if isinstance(exc, RequestDataTooBig):
            return RequestTooLarge()
        if isinstance(exc, SuspiciousOperation | BadRequest):
            return exceptions.ParseError()
        if isinstance(exc, OperationalError | InterfaceError):
            return TemporarilyUnavailable()
        known: Exception = super().convert_known_exceptions(exc)
        if type(known) is exceptions.ValidationError and _only_rules(known.get_codes()):
            known.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
        return known


def handle(exc: Exception, context: ExceptionHandlerContext) -> Response | None:
    """DRF's EXCEPTION_HANDLER."""
    return Handler(exc, context).run()


def body(kind: str, code: str, detail: str) -> dict[str, Any]:
    """The shape by hand, for answers that are made outside of any view."""
    return {"type": kind, "errors": [{"code": code, "detail": detail, "attr": None}]}


def _only_rules(codes: Any) -> bool:
    """Whether all the codes in DRF's nested codes are of rules."""
    if isinstance(codes, str):
        return codes in RULE_CODES
    nested = codes.values() if isinstance(codes, dict) else codes
    return all(_only_rules(code) for code in nested)


def _cleaned(error: Error) -> Error:
    detail = str(_OUR_WORDS.get(error.code, error.detail))
    attr = error.attr
    if attr is not None:
        # A name from the body may hold what UTF-8 cannot.
        attr = attr[:_MAX_ATTR].encode("utf-8", "replace").decode()
    return Error(error.code, detail, attr)
