"""Where WAHA posts: signature, raw row, 200. Nothing is understood here, so nothing of a body can go wrong."""

from __future__ import annotations

import hashlib
import hmac
import logging

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.utils import timezone
from django.utils.translation import gettext as _

from channels_waha import selectors
from messaging import intake
from messaging.models import Channel
from permissions import isolation
from permissions.api.errors import body as error_body
from permissions.api.plain import answers, openapi_answer
from permissions.encryption import SecretUnreadable

log = logging.getLogger(__name__)

_RETRY_AFTER_SECONDS = 5
_OPERATION = {
    "summary": "Where WAHA posts what happens to a session",
    "description": "Signed with the session's secret: HMAC-SHA512 of the body in `X-Webhook-Hmac`. Kept raw, applied"
    " afterwards.",
    "tags": ["webhooks"],
    "security": [],
    "parameters": [
        {"name": "session_name", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "X-Webhook-Hmac", "in": "header", "schema": {"type": "string", "pattern": "^[0-9a-fA-F]{128}$"}},
        {"name": "X-Webhook-Request-Id", "in": "header", "schema": {"type": "string"}},
    ],
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
    "responses": {
        "200": openapi_answer("Kept."),
        "400": openapi_answer("The body broke off."),
        "401": openapi_answer("Not signed by this session, or no such session. Nothing is kept."),
        "413": openapi_answer("Too large.", schema={"type": "object"}, media_type="application/json"),
        "503": openapi_answer("Not available right now: post it again."),
    },
}


@answers("POST", openapi={"post": _OPERATION})
def receive(request: HttpRequest, session_name: str) -> HttpResponse:
    """Store one delivery of a session, if that session's secret signed it.

    401 (empty, nothing stored) for a wrong or missing signature and for an unknown session alike; 413 by
    Content-Length, before a byte is read; 503 where the database is away: WAHA tries again.
    """
    if _length(request) > settings.WEBHOOK_MAX_BYTES:
        return _too_large()
    try:
        # Not request.body: its limit is that of forms.
        body = request.read()
    except UnreadablePostError:
        return HttpResponse(status=400)
    try:
        return _store(request, session_name, body)
    except (Error, SecretUnreadable) as error:
        log.error("a webhook could not be stored: %s", type(error).__name__)
        return HttpResponse(status=503, headers={"Retry-After": str(_RETRY_AFTER_SECONDS)})


def _store(request: HttpRequest, session_name: str, body: bytes) -> HttpResponse:
    channel = _signer(session_name, body, request.headers.get("X-Webhook-Hmac", ""))
    if channel is None:
        return HttpResponse(status=401)
    with isolation.of(channel.organization_id):
        intake.store(
            channel=channel,
            body=body,
            headers=request.headers,
            request_id=request.headers.get("X-Webhook-Request-Id", ""),
            now=timezone.now(),
        )
    return HttpResponse(status=200)


def _signer(session_name: str, body: bytes, signature: str) -> Channel | None:
    """The channel whose secret signed it. Whoever was read lately is asked first: several posts follow a message."""
    caller = selectors.recent_caller(session_name)
    if caller is not None and _is_signed(body, signature, caller.secrets):
        return caller.channel
    caller = selectors.caller_of(session_name)
    return caller.channel if _is_signed(body, signature, caller.secrets) else None


def _is_signed(body: bytes, signature: str, secrets: tuple[str, str]) -> bool:
    """HMAC-SHA512 of the raw bytes in hex of any case. Both secrets are tried, whichever fits: one cost for all."""
    given = signature.strip().lower().encode("utf-8", "replace")
    fits = [
        hmac.compare_digest(hmac.digest(secret.encode(), body, hashlib.sha512).hex().encode(), given)
        for secret in secrets
    ]
    return any(fits)


def _length(request: HttpRequest) -> int:
    written = request.META.get("CONTENT_LENGTH") or "0"
    return int(written) if written.isascii() and written.isdigit() and len(written) < 19 else 0


def _too_large() -> HttpResponse:
    return JsonResponse(error_body("client_error", "body_too_large", _("The body is too large.")), status=413)
