"""Who calls: ``Authorization: Bearer <api key>``."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from permissions import selectors, services
from permissions.api.refusals import InvalidApiKey
from permissions.models import ApiKey, Organization, User


class ApiRequest(Request):
    """A request as views see it once its key is known."""

    auth: ApiKey
    user: User
    organization: Organization


class ApiKeyAuthentication(BaseAuthentication):
    """Sets ``request.auth`` (the key), ``request.user`` (its owner) and ``request.organization``.

    A key that is missing, malformed, unknown, expired, revoked, or of someone who is no longer active in
    the organization gets one and the same 401. Keys in a query string are not looked at: URLs end in logs.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiKey]:
        now = timezone.now()
        key = selectors.usable_key(_token(request), now=now)
        if key is None:
            raise InvalidApiKey
        services.note_use(key=key, now=now)
        request.organization = key.organization  # type: ignore[attr-defined]
        return key.owner, key

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        return "Bearer"


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
