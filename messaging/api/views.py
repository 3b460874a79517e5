"""Endpoints of messages: each makes one call into the room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response

from events import services as events
from messaging import decisions, streams
from messaging.api import serializers
from messaging.models import Message
from permissions import ids
from permissions.api.authentication import ApiRequest
from permissions.api.described import Answer, Operation
from permissions.api.idempotency import idempotent
from permissions.api.refusals import Conflict
from permissions.api.serializers import get_or_404
from permissions.api.views import ApiView
from permissions.models import Scope


class MessageView(ApiView):
    """``GET /messages/{id}``."""

    required_scopes = {"GET": Scope.MESSAGES_READ}

    @Operation(summary="One message", answers={200: Answer("The message.", serializers.MessageShown)})
    def get(self, request: ApiRequest, reference: str) -> Response:  # noqa: ARG002 - DRF's signature
        return Response(_shown(self, reference))


class RetryView(ApiView):
    """``POST /messages/{id}/retry``."""

    required_scopes = {"POST": Scope.MESSAGES_SEND}

    @Operation(
        summary="Send a message again",
        description="One that failed, or of which nobody knows whether it was sent. Unless it certainly was not sent,"
        " `accept_duplicate_risk` says that it may arrive twice. A completed broadcast goes on with it.",
        body=serializers.RetrySerializer,
        answers={200: Answer("The message as it is now.", serializers.MessageShown)},
        refusals={403: ("group_forbidden",), 409: ("duplicate_risk", "invalid_transition")},
    )
    @idempotent()
    def post(self, request: ApiRequest, reference: str) -> Response:
        form = serializers.RetrySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        with _answered():
            decisions.send_again(
                _found(self, reference).pk,
                accepts_duplicate=form.validated_data["accept_duplicate_risk"],
                actor=events.author(self.owner, self.key),
                now=timezone.now(),
            )
        return Response(_shown(self, reference))


def _found(view: ApiView, reference: str) -> Message:
    return get_or_404(Message.objects.of(view.organization), ids.MESSAGE, reference)


def _shown(view: ApiView, reference: str) -> dict[str, Any]:
    return serializers.shown(_found(view, reference), timezone.now())


@contextmanager
def _answered() -> Iterator[None]:
    """The room's refusals as the contract's answers."""
    try:
        yield
    except decisions.DuplicateRisk as risk:
        detail = _("It may have been sent: accept_duplicate_risk says that it may arrive twice.")
        raise Conflict("duplicate_risk", detail) from risk
    except decisions.Undecidable as wrong:
        detail = _("A message that is %(status)s can't be sent again.") % {"status": wrong.status}
        raise Conflict("invalid_transition", detail) from wrong
    except streams.StreamEnded as ended:
        raise Conflict("invalid_transition", _("Its broadcast is over for good.")) from ended
    except decisions.OwnerRefuses as refused:
        raise exceptions.PermissionDenied(refused.detail, refused.code) from refused
