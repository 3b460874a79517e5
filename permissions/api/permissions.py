"""What a caller may do: its scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from permissions.api.callers import Caller
from permissions.api.refusals import InsufficientScope, InvalidApiKey


class HasScope(BasePermission):
    """Asks the view's ``required_scopes``: ``{"GET": Scope.BROADCAST_READ, "POST": Scope.BROADCAST_SEND}``.

    A method that the view does not name is let through to its 405, never to a handler: a view that
    answers a method without naming its scope fails at once.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, Caller):
            raise InvalidApiKey
        scopes: Mapping[str, str] = view.required_scopes
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in scopes:
            if method != "OPTIONS" and hasattr(view, method.lower()):
                raise ImproperlyConfigured(f"{type(view).__name__} names no scope for {method}")
        elif not request.auth.may(scopes[method]):
            raise InsufficientScope
        return True
