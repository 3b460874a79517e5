"""Idempotency-Key: the same POST twice has one effect and one answer.

The answer is kept in the transaction of its effect, so that neither exists without the other.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from permissions.api.authentication import ApiRequest
from permissions.api.refusals import Conflict, RuleViolation
from permissions.api.views import ApiView
from permissions.models import IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
# The contract says 24 h at least.
KEPT_FOR = timedelta(hours=48)
_FORM = re.compile(r"[\x20-\x7e]{1,255}")
_KEPT_HEADERS = ("Location",)
# The first half of advisory lock keys of this kind.
_LOCK_SEED = 3

View = TypeVar("View", bound=ApiView)
Parameters = ParamSpec("Parameters")
Handler = Callable[Concatenate[View, ApiRequest, Parameters], Response]


def idempotent(
    *, kept_for: timedelta | None = KEPT_FOR
) -> Callable[[Handler[View, Parameters]], Handler[View, Parameters]]:
    """Let a handler answer a repeated Idempotency-Key with its first answer.

    With a key, the handler runs in one transaction with the record of its answer, so its services must not
    touch the network. ``kept_for=None``: as long as what it made exists. Raises RuleViolation
    ``invalid_idempotency_key`` and ``idempotency_key_reused`` (422), Conflict
    ``idempotency_key_in_flight`` (409). Only 2xx are kept.
    """

    def decorate(handler: Handler[View, Parameters]) -> Handler[View, Parameters]:
        @functools.wraps(handler)
        def answer(view: View, request: ApiRequest, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Response:
            key = key_of(request)
            if key is None:
                return handler(view, request, *args, **kwargs)
            # Read before the transaction: a body that can't be read needs no lock.
            fingerprint = _fingerprint(request)
            with transaction.atomic():
                _lock(request, key)
                if (first := _first_answer(request, key)) is not None:
                    return _again(first, fingerprint)
                response = handler(view, request, *args, **kwargs)
                _keep(request, key, fingerprint, response, kept_for)
            return response

        return answer

    return decorate


def key_of(request: ApiRequest) -> str | None:
    """The request's Idempotency-Key; None without one. Raises RuleViolation ``invalid_idempotency_key``."""
    key = request.headers.get(HEADER)
    if key is not None and not _FORM.fullmatch(key):
        detail = _("An Idempotency-Key has 1 to 255 printable ASCII characters.")
        raise RuleViolation("invalid_idempotency_key", detail)
    return key


def _fingerprint(request: ApiRequest) -> str:
    """What makes two requests the same: method, path, and the body however its JSON was laid out."""
    canonical = json.dumps(request.data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{request.method}\n{request.path}\n{canonical}".encode()).hexdigest()


def _lock(request: ApiRequest, key: str) -> None:
    """Try to be the only request with this key; the lock ends with the transaction."""
    name = f"{request.organization.pk}:{request.user.pk}:{key}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", [name, _LOCK_SEED])
        (ours,) = cursor.fetchone()
    if not ours:
        detail = _("A request with this Idempotency-Key is still running.")
        raise Conflict("idempotency_key_in_flight", detail, wait=1)


def _first_answer(request: ApiRequest, key: str) -> IdempotencyRecord | None:
    records = IdempotencyRecord.objects.of(request.organization).filter(owner=request.user, key=key)
    record = records.first()
    if record is not None and record.expires_at is not None and record.expires_at <= timezone.now():
        record.delete()
        return None
    return record


def _again(first: IdempotencyRecord, fingerprint: str) -> Response:
    if first.fingerprint != fingerprint:
        detail = _("This Idempotency-Key was used for another request.")
        raise RuleViolation("idempotency_key_reused", detail)
    body = json.loads(first.body) if first.body else None
    return Response(body, status=first.status, headers={**first.headers, REPLAYED: "true"})


def _keep(request: ApiRequest, key: str, fingerprint: str, response: Response, kept_for: timedelta | None) -> None:
    if not 200 <= response.status_code < 300:
        return
    now = timezone.now()
    IdempotencyRecord.objects.create(
        organization=request.organization,
        owner=request.user,
        key=key,
        fingerprint=fingerprint,
        status=response.status_code,
        # As text: a jsonb object would forget the order of its names.
        body=_rendered(response.data),
        headers={name: response[name] for name in _KEPT_HEADERS if response.has_header(name)},
        created_at=now,
        expires_at=now + kept_for if kept_for is not None else None,
    )


def _rendered(data: Any) -> str:
    return JSONRenderer().render(data).decode() if data is not None else ""
