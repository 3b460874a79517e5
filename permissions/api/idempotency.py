"""Idempotency-Key: the same POST twice has one effect and one answer.

Where the effect is rows alone, the answer is kept in its transaction, so that neither exists without the other.
Where it needs the network, the request is committed first as started, and whoever retries it runs the operation
again under the same ``effect_id``: the operation converges, and the answer that comes first is kept.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.http import Http404, QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from permissions.api.authentication import ApiRequest
from permissions.api.refusals import Conflict, RuleViolation
from permissions.api.views import ApiView
from permissions.ids import new_id
from permissions.models import IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
# The contract says 24 h at least.
KEPT_FOR = timedelta(hours=48)
# Set on every handler that is decorated; tests/house asks each POST for it.
MARK = "is_idempotent"
_FORM = re.compile(r"[\x20-\x7e]{1,255}")
_KEPT_HEADERS = ("Location",)
# The first half of advisory lock keys of this kind.
_LOCK_SEED = 3
# A started request usually ends long before its lease does.
_LONGEST_WAIT = 5

View = TypeVar("View", bound=ApiView)
Parameters = ParamSpec("Parameters")
Handler = Callable[Concatenate[View, ApiRequest, Parameters], Response]


def idempotent(
    *, kept_for: timedelta | None = KEPT_FOR, network: timedelta | None = None
) -> Callable[[Handler[View, Parameters]], Handler[View, Parameters]]:
    """Let a handler answer a repeated Idempotency-Key with its first answer. Every POST has it.

    Without ``network`` the handler runs in one transaction with the record of its answer, so its services must
    not touch the network.

    With ``network``, the longest time that the handler may take, it runs in no transaction. It makes what it
    makes under ``request.effect_id``, which is the same for every retry with the key, and must come to the same
    end however far an earlier attempt came. A refusal (4xx) of the first attempt says that nothing was done, so
    it must be raised before the first effect; the key is free again then. After any other failure the request
    stays started: the same request runs again, another body is refused. A process that dies leaves it started,
    and busy until ``network`` is over.

    ``kept_for=None``: as long as what it made exists. Raises RuleViolation ``invalid_idempotency_key`` and
    ``idempotency_key_reused`` (422), Conflict ``idempotency_key_in_flight`` (409). Only 2xx are kept.
    """

    def decorate(handler: Handler[View, Parameters]) -> Handler[View, Parameters]:
        @functools.wraps(handler)
        def answer(view: View, request: ApiRequest, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Response:
            key = key_of(request)
            run = functools.partial(handler, view, request, *args, **kwargs)
            if key is None:
                request.effect_id = new_id()
                return run()
            # Read before any transaction: a body that can't be read needs no lock.
            fingerprint = _fingerprint(request)
            if network is not None:
                return _run_started(request, key, fingerprint, run, kept_for, network)
            return _run_at_once(request, key, fingerprint, run, kept_for)

        setattr(answer, MARK, True)
        return answer

    return decorate


def without_effect(handler: Handler[View, Parameters]) -> Handler[View, Parameters]:
    """Of a POST that changes nothing: its key is judged as any other, and not kept, so that it stays free.

    Raises RuleViolation ``invalid_idempotency_key`` (422).
    """

    @functools.wraps(handler)
    def answer(view: View, request: ApiRequest, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Response:
        key_of(request)
        return handler(view, request, *args, **kwargs)

    setattr(answer, MARK, True)
    return answer


def key_of(request: ApiRequest) -> str | None:
    """The request's Idempotency-Key; None without one. Raises RuleViolation ``invalid_idempotency_key``."""
    key = request.headers.get(HEADER)
    if key is not None and not _FORM.fullmatch(key):
        detail = _("An Idempotency-Key has 1 to 255 printable ASCII characters.")
        raise RuleViolation("invalid_idempotency_key", detail)
    return key


def _run_at_once(
    request: ApiRequest, key: str, fingerprint: str, run: Callable[[], Response], kept_for: timedelta | None
) -> Response:
    """The effect and its answer in one transaction."""
    with transaction.atomic():
        _lock(request, key)
        record = _found(request, key, fingerprint)
        if record is not None and record.status is not None:
            return _again(record)
        record = record or _new(request, key, fingerprint)
        request.effect_id = record.effect_id
        response = run()
        if _is_kept(response):
            _keep(record, response, kept_for)
            record.save()
    return response


def _run_started(
    request: ApiRequest,
    key: str,
    fingerprint: str,
    run: Callable[[], Response],
    kept_for: timedelta | None,
    network: timedelta,
) -> Response:
    """Committed as started, then run outside of any transaction, then answered."""
    record = _begin(request, key, fingerprint, network)
    if record.status is not None:
        return _again(record)
    request.effect_id = record.effect_id
    try:
        response = run()
    except Exception as error:
        _let_go(record, refused=_is_refusal(error))
        raise
    if not _is_kept(response):
        _let_go(record, refused=response.status_code < 500)
        return response
    _keep(record, response, kept_for)
    # Where the lease was over, another attempt may have answered before: the first answer stands.
    fields = {name: getattr(record, name) for name in ("status", "body", "headers", "expires_at", "busy_until")}
    _open(record).update(**fields)
    return response


def _begin(request: ApiRequest, key: str, fingerprint: str, network: timedelta) -> IdempotencyRecord:
    """The record, committed as started and busy by us; or answered. Raises Conflict while another is at it."""
    with transaction.atomic():
        _lock(request, key)
        now = timezone.now()
        record = _found(request, key, fingerprint)
        if record is None:
            record = _new(request, key, fingerprint)
        elif record.status is not None:
            return record
        elif record.busy_until is not None and record.busy_until > now:
            raise _in_flight(record.busy_until - now)
        else:
            record.attempts += 1
        record.busy_until = now + network
        record.save()
    return record


def _let_go(record: IdempotencyRecord, *, refused: bool) -> None:
    """Nothing was done: forget it. Else whoever comes next may go on at once."""
    if refused and record.attempts == 1:
        _open(record).delete()
    else:
        _open(record).update(busy_until=None)


def _open(record: IdempotencyRecord) -> Any:
    """The record as long as it has no answer, and nobody has begun it anew."""
    rows = IdempotencyRecord.objects.of(record.organization_id)
    return rows.filter(pk=record.pk, status=None, attempts=record.attempts)


def _is_refusal(error: Exception) -> bool:
    if isinstance(error, APIException):
        return error.status_code < 500
    return isinstance(error, Http404 | PermissionDenied)


def _is_kept(response: Response) -> bool:
    return 200 <= response.status_code < 300


def _fingerprint(request: ApiRequest) -> str:
    """What makes two requests the same: method, path, and the body however its JSON was laid out."""
    data = request.data
    body = _parts(data) if isinstance(data, QueryDict) else data
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{request.method}\n{request.path}\n{canonical}".encode()).hexdigest()


def _parts(data: QueryDict) -> dict[str, list[Any]]:
    """A form's parts by name; of a file its name, its type and what its bytes hash to."""
    return {
        name: [_file(part) if isinstance(part, UploadedFile) else part for part in parts]
        for name, parts in data.lists()
    }


def _file(part: UploadedFile[Any]) -> list[str]:
    whole = hashlib.sha256()
    for chunk in part.chunks():
        whole.update(chunk)
    part.seek(0)
    return [str(part.name), str(part.content_type), whole.hexdigest()]


def _lock(request: ApiRequest, key: str) -> None:
    """Try to be the only request with this key; the lock ends with the transaction."""
    name = f"{request.organization.pk}:{request.user.pk}:{key}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", [name, _LOCK_SEED])
        (ours,) = cursor.fetchone()
    if not ours:
        raise _in_flight(timedelta(seconds=1))


def _in_flight(left: timedelta) -> Conflict:
    detail = _("A request with this Idempotency-Key is still running.")
    wait = min(math.ceil(left.total_seconds()), _LONGEST_WAIT)
    return Conflict("idempotency_key_in_flight", detail, wait=wait)


def _found(request: ApiRequest, key: str, fingerprint: str) -> IdempotencyRecord | None:
    """The record of the key, unless its time is over. Raises RuleViolation where it is of another request."""
    record = IdempotencyRecord.objects.of(request.organization).filter(owner=request.user, key=key).first()
    if record is not None and _is_over(record, timezone.now()):
        record.delete()
        return None
    if record is not None and record.fingerprint != fingerprint:
        detail = _("This Idempotency-Key was used for another request.")
        raise RuleViolation("idempotency_key_reused", detail)
    return record


def _is_over(record: IdempotencyRecord, now: datetime) -> bool:
    return record.expires_at is not None and record.expires_at <= now


def _new(request: ApiRequest, key: str, fingerprint: str) -> IdempotencyRecord:
    now = timezone.now()
    return IdempotencyRecord(
        organization=request.organization,
        owner=request.user,
        key=key,
        fingerprint=fingerprint,
        created_at=now,
        expires_at=now + KEPT_FOR,
    )


def _again(first: IdempotencyRecord) -> Response:
    body = json.loads(first.body) if first.body else None
    return Response(body, status=first.status, headers={**first.headers, REPLAYED: "true"})


def _keep(record: IdempotencyRecord, response: Response, kept_for: timedelta | None) -> None:
    record.status = response.status_code
    # As text: a jsonb object would forget the order of its names.
    record.body = _rendered(response.data)
    record.headers = {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)}
    record.expires_at = timezone.now() + kept_for if kept_for is not None else None
    record.busy_until = None


def _rendered(data: Any) -> str:
    return JSONRenderer().render(data).decode() if data is not None else ""
