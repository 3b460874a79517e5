"""Who calls: ``Authorization: Bearer <api key>``, or else the console's session cookie."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request

from permissions import ids, isolation, roles, selectors, services
from permissions.api import floods
from permissions.api.callers import Caller
from permissions.api.refusals import CsrfFailed, InvalidApiKey, Unreadable
from permissions.models import Membership, Organization, User

# Which organization is meant: ``org_…`` or its slug. Needed by people who are in several.
ORGANIZATION_HEADER = "X-Organization"


class ApiRequest(Request):
    """A request as views see it once it is known who calls."""

    auth: Caller
    user: User
    organization: Organization
    # Of a POST: the id for what it makes, the same whenever its Idempotency-Key comes again.
    effect_id: UUID


class ApiKeyAuthentication(BaseAuthentication):
    """Sets ``request.auth`` (a Caller), ``request.user`` (the key's owner) and ``request.organization``.

    A key that is malformed, unknown, expired, revoked, or of someone who is no longer active in the
    organization gets one and the same 401, and so does a request without key and session. A cookie is not
    looked at beside an Authorization header. Keys in a query string are not looked at: URLs end in logs.
    """

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        if "Authorization" not in request.headers:
            return None
        now, token = timezone.now(), _token(request)
        floods.refuse_beyond_limit(request, token)
        key = selectors.usable_key(token, now=now)
        if key is None:
            floods.count_bad_key(request)
            raise InvalidApiKey
        isolation.settle_in(key.organization_id)
        if services.note_use(key=key, now=now):
            floods.remember_good_key(key.public_id)
        named = _named(request)
        if named and not _is_named(key.organization, named):
            raise _no_such_organization()
        return _known(request, Caller(key.owner, key.organization, frozenset(key.scopes), key))

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        return "Bearer"


class SessionAuthentication(BaseAuthentication):
    """The console's signed-in staff, with the scopes of their role (``permissions.roles``); CSRF is enforced.

    A super-admin acts in the organizations that he is a member of, like everybody: what is done through the
    API is then always done by somebody of that organization, in a role.
    """

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        person = getattr(request._request, "user", None)
        if not isinstance(person, User) or not person.is_active or not person.is_staff:
            return None
        _enforce_csrf(request)
        place = _chosen(selectors.places_of(person), _named(request))
        return _known(request, Caller(person, place.organization, roles.scopes_of(place.role)))


def _known(request: Request, caller: Caller) -> tuple[User, Caller]:
    isolation.settle_in(caller.organization.pk)
    request.organization = caller.organization  # type: ignore[attr-defined]
    return caller.user, caller


def _token(request: Request) -> str:
    scheme, _blank, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _named(request: Request) -> str:
    return request.headers.get(ORGANIZATION_HEADER, "").strip()


def _enforce_csrf(request: Request) -> None:
    check = CSRFCheck(lambda _request: None)  # type: ignore[arg-type]
    check.process_request(request._request)
    if check.process_view(request._request, None, (), {}) is not None:  # type: ignore[arg-type]
        raise CsrfFailed


def _chosen(places: list[Membership], named: str) -> Membership:
    """The place that the header names, or the only one."""
    if named:
        found = [place for place in places if _is_named(place.organization, named)]
        if not found:
            raise _no_such_organization()
        return found[0]
    if not places:
        detail = _("You are a member of no organization, and the API acts within one, for super-admins too.")
        raise PermissionDenied(detail, "no_organization")
    if len(places) > 1:
        detail = _("You are in several organizations: name one in the header X-Organization, by id or slug.")
        raise Unreadable("organization_required", detail, ORGANIZATION_HEADER)
    return places[0]


def _is_named(organization: Organization, text: str) -> bool:
    return text in {organization.slug, ids.encode(ids.ORGANIZATION, organization.pk)}


def _no_such_organization() -> NotFound:
    return NotFound(_("You are in no organization of that name."), "organization_not_found")
