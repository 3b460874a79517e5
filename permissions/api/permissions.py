"""What a key may do: its scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from permissions.api.refusals import InsufficientScope, InvalidApiKey
from permissions.models import ApiKey, Scope

# Whoever may send broadcasts reads those of the key's owner; reading all takes the scope itself.
_IMPLIED_BY = {Scope.BROADCAST_READ: Scope.BROADCAST_SEND}


class HasScope(BasePermission):
    """Asks the view's ``required_scopes``: ``{"GET": Scope.BROADCAST_READ, "POST": Scope.BROADCAST_SEND}``.

    A method that the view does not name is let through to its 405, never to a handler: a view that
    answers a method without naming its scope fails at once.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.auth, ApiKey):
            raise InvalidApiKey
        scopes: Mapping[str, str] = view.required_scopes
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in scopes:
            if method != "OPTIONS" and hasattr(view, method.lower()):
                raise ImproperlyConfigured(f"{type(view).__name__} names no scope for {method}")
        elif not has_scope(request.auth, scopes[method]):
            raise InsufficientScope
        return True


def has_scope(key: ApiKey, scope: str) -> bool:
    """Whether the key has the scope, or one that implies it."""
    implied_by = _IMPLIED_BY.get(Scope(scope))
    return scope in key.scopes or (implied_by is not None and implied_by in key.scopes)


def reads_only_own(key: ApiKey) -> bool:
    """Whether the key sees only the broadcasts of its owner (``broadcast:send`` without ``…:read``)."""
    return Scope.BROADCAST_READ not in key.scopes
