"""Endpoints of broadcasts: each makes one call into the room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.response import Response

from audience.models import Group
from audience.selectors import groups
from broadcasts import exports, findings, outlook, previews, refusals, selectors, services
from broadcasts.api import serializers, shapes
from broadcasts.models import Broadcast
from events import services as events
from messaging.models import Channel
from permissions import ids
from permissions.api.authentication import ApiRequest
from permissions.api.described import Answer, Operation, Query
from permissions.api.idempotency import idempotent, key_of, without_effect
from permissions.api.pagination import CursorPagination
from permissions.api.refusals import Conflict, RuleViolation, Unreadable
from permissions.api.views import ApiView
from permissions.models import Scope

_MOVE_WORDS = {
    "pause": ("Pause a broadcast", "At most one message per number still leaves."),
    "resume": ("Resume a broadcast", "It goes on where it stopped."),
    "cancel": ("Cancel a broadcast", "What has not left never leaves."),
    "retry-failed": (
        "Send again what failed",
        "Only what certainly was not sent, never what is in doubt; a completed broadcast goes on.",
    ),
}
_MOVED = Answer("The broadcast as it is now.", shapes.Shown)


class RecipientPagination(CursorPagination):
    """In the order of the audience."""

    ordering = "position"


class BroadcastsView(ApiView):
    """``GET /broadcasts`` and ``POST /broadcasts``."""

    required_scopes = {"GET": Scope.BROADCAST_READ, "POST": Scope.BROADCAST_SEND}

    @Operation(
        summary="List broadcasts",
        description="Those of the key's owner; with `broadcast:read`, or for an admin, all of the organization.",
        item=shapes.Shown,
        query=(
            Query("status", "Only those of this status.", Broadcast.Status.values),
            Query("group_id", "Only those to this group, by either of its ids."),
        ),
        refusals={400: ("invalid_choice",)},
    )
    def get(self, request: ApiRequest) -> Response:
        paginator = CursorPagination()
        rows = selectors.visible_to(
            organization=self.organization, person=self.owner, reads_all=not self.caller.reads_only_own
        )
        if (wanted := _chosen(request, "status", Broadcast.Status.values)) is not None:
            rows = rows.filter(status=wanted)
        if (reference := request.query_params.get("group_id")) is not None:
            rows = rows.filter(group=self._group(reference))
        page = paginator.paginate_queryset(rows, request, view=self) or []
        return paginator.get_paginated_response(_shown(page))

    @Operation(
        summary="Post a broadcast",
        description="Freezes the group's audience and queues one message for each person: at once, at"
        " `scheduled_at`, or once an admin has approved it. Either `variations` or `template_name`.",
        body=serializers.DraftSerializer,
        answers={202: Answer("Accepted.", shapes.Accepted, headers=("Location",))},
        refusals=shapes.COMPOSING,
    )
    @idempotent(kept_for=None)
    def post(self, request: ApiRequest) -> Response:
        form = serializers.DraftSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        now = timezone.now()
        with _answered():
            broadcast = services.compose(
                organization=self.organization,
                owner=self.owner,
                api_key=self.key,
                draft=form.draft(),
                idempotency_key=key_of(request),
                now=now,
            )
        tally = selectors.tally(broadcast)
        ahead = outlook.outlooks([broadcast], {broadcast.pk: tally}, now)[broadcast.pk]
        warnings = [*findings.warnings(tally, ahead), *findings.risks(broadcast, _numbers(broadcast), tally)]
        place = reverse("broadcast", args=[ids.encode(ids.BROADCAST, broadcast.pk)])
        return Response(
            serializers.accepted(broadcast, tally, ahead, warnings),
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": place},
        )

    def _group(self, reference: str) -> Group:
        group = groups.find(organization_id=self.organization.pk, reference=reference)
        if group is None:
            raise Unreadable("invalid_choice", _("This is not one of the allowed values."), "group_id")
        return group


class PreviewView(ApiView):
    """``POST /broadcasts/preview``: what the same body would make. Nothing is stored, so any repetition is safe."""

    required_scopes = {"POST": Scope.BROADCAST_SEND}

    @Operation(
        summary="See what a broadcast would be",
        description="Takes what posting a broadcast takes, and makes nothing: who would get it and who not, what they"
        " would read, how much would leave on which day, and what may hold it up or cost a number.",
        body=serializers.DraftSerializer,
        answers={200: Answer("What posting the same body would make.", shapes.Previewed)},
        refusals=shapes.COMPOSING,
    )
    @without_effect
    def post(self, request: ApiRequest) -> Response:
        form = serializers.DraftSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        with _answered():
            seen = previews.preview(
                organization=self.organization, owner=self.owner, draft=form.draft(), now=timezone.now()
            )
        return Response(serializers.previewed(seen))


class BroadcastView(ApiView):
    """``GET /broadcasts/{id or public_id}``."""

    required_scopes = {"GET": Scope.BROADCAST_READ}

    @Operation(
        summary="One broadcast, by its id or its public id",
        answers={200: Answer("The broadcast.", shapes.Shown)},
        refusals=shapes.READING,
    )
    def get(self, request: ApiRequest, reference: str) -> Response:  # noqa: ARG002 - DRF's signature
        return Response(_shown([_readable(self, reference)])[0])


class RecipientsView(ApiView):
    """``GET /broadcasts/{id}/recipients?status=``."""

    required_scopes = {"GET": Scope.BROADCAST_READ}

    @Operation(
        summary="What became of each person",
        description="In the order of the audience, the excluded with their reason. A message in doubt is found by"
        " `in_doubt` and by `failed`.",
        item=shapes.Person,
        query=(Query("status", "Only those of this status.", selectors.WORDS),),
        refusals=shapes.READING,
    )
    def get(self, request: ApiRequest, reference: str) -> Response:
        broadcast = _readable(self, reference)
        wanted = _chosen(request, "status", selectors.WORDS)
        paginator = RecipientPagination()
        page = paginator.paginate_queryset(selectors.recipients(broadcast, status=wanted), request, view=self) or []
        messages = selectors.messages_of(page)
        return paginator.get_paginated_response(
            [serializers.recipient(person, messages.get(person.message_id)) for person in page]
        )


class RecipientsFileView(ApiView):
    """``GET /broadcasts/{id}/recipients.csv?status=&separator=``, streamed."""

    required_scopes = {"GET": Scope.BROADCAST_READ}

    @Operation(
        summary="What became of each person, as a file",
        description="The same people in CSV: UTF-8 with a byte order mark, cells that no spreadsheet computes (a"
        " `'` stands before what looks like a formula).",
        answers={200: Answer("The file.", {"type": "string"}, headers=("Content-Disposition",), media_type="text/csv")},
        query=(
            Query("status", "Only those of this status.", selectors.WORDS),
            Query("separator", "What stands between cells; `comma` if not given.", exports.SEPARATORS),
        ),
        refusals=shapes.READING,
    )
    def get(self, request: ApiRequest, reference: str) -> StreamingHttpResponse:
        broadcast = _readable(self, reference)
        wanted = _chosen(request, "status", selectors.WORDS)
        separator = exports.SEPARATORS[_chosen(request, "separator", exports.SEPARATORS) or "comma"]
        return StreamingHttpResponse(
            exports.lines(broadcast, status=wanted, separator=separator),
            content_type=exports.TYPE,
            headers=exports.headers(broadcast),
        )


class MoveView(ApiView):
    """``POST /broadcasts/{id}/pause|resume|cancel|retry-failed``: for the owner and admins of the organization."""

    required_scopes = {"POST": Scope.BROADCAST_SEND}
    move: ClassVar[str] = ""

    _moves: ClassVar[dict[str, Callable[..., Broadcast]]] = {
        "pause": services.pause,
        "resume": services.resume,
        "cancel": services.cancel,
        "retry-failed": services.retry_failed,
    }

    @Operation(
        summary=lambda view: _MOVE_WORDS[view.move][0],
        description=lambda view: f"{_MOVE_WORDS[view.move][1]} For its owner and the organization's admins.",
        body=serializers.NothingSerializer,
        answers={200: _MOVED},
        refusals=shapes.MOVING,
    )
    @idempotent()
    def post(self, request: ApiRequest, reference: str) -> Response:
        serializers.NothingSerializer(data=request.data).is_valid(raise_exception=True)
        broadcast = _found(self, reference)
        if not selectors.is_owner_or_admin(broadcast, self.owner):
            raise exceptions.PermissionDenied
        with _answered():
            self._moves[self.move](broadcast=broadcast, actor=events.author(self.owner, self.key), now=timezone.now())
        return Response(_shown([_found(self, reference)])[0])


class ApproveView(ApiView):
    """``POST /broadcasts/{id}/approve``: for another admin than the owner, or the only one there is."""

    required_scopes = {"POST": Scope.BROADCAST_SEND}

    @Operation(
        summary="Approve a broadcast that waits for review",
        description="For another admin than its owner. Where the organization has one admin only, he says how many"
        " recipients it has.",
        body=serializers.ApprovalSerializer,
        answers={200: _MOVED},
        refusals=shapes.APPROVING,
    )
    @idempotent()
    def post(self, request: ApiRequest, reference: str) -> Response:
        form = serializers.ApprovalSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        broadcast = _found(self, reference)
        with _answered():
            services.approve(
                broadcast=broadcast,
                approver=self.owner,
                actor=events.author(self.owner, self.key),
                now=timezone.now(),
                confirmed=form.validated_data.get("confirm_recipients"),
            )
        return Response(_shown([_found(self, reference)])[0])


def _chosen(request: ApiRequest, name: str, allowed: Collection[str]) -> str | None:
    """A parameter that is one of a closed list, or not given. Raises Unreadable ``invalid_choice``."""
    given = request.query_params.get(name)
    if given is not None and given not in allowed:
        raise Unreadable("invalid_choice", _("This is not one of the allowed values."), name)
    return given


def _numbers(broadcast: Broadcast) -> list[Channel]:
    return list(broadcast.channels.select_related("lane"))


def _found(view: ApiView, reference: str) -> Broadcast:
    broadcast = selectors.find(organization=view.organization, reference=reference)
    if broadcast is None:
        raise exceptions.NotFound
    return broadcast


def _readable(view: ApiView, reference: str) -> Broadcast:
    broadcast = _found(view, reference)
    if view.caller.reads_only_own and not selectors.is_owner_or_admin(broadcast, view.owner):
        raise exceptions.PermissionDenied
    return broadcast


def _shown(broadcasts: list[Broadcast]) -> list[dict[str, Any]]:
    tallies = selectors.tallies(broadcasts)
    ahead = outlook.outlooks(broadcasts, tallies, timezone.now())
    return [serializers.shown(each, tallies[each.pk], ahead[each.pk]) for each in broadcasts]


@contextmanager
def _answered() -> Iterator[None]:
    """The room's refusals as the contract's answers."""
    try:
        yield
    except refusals.NotFound as missing:
        raise exceptions.NotFound(missing.detail, missing.code) from missing
    except refusals.Forbidden as forbidden:
        raise exceptions.PermissionDenied(forbidden.detail, forbidden.code) from forbidden
    except refusals.Refused as refused:
        raise RuleViolation(refused.code, refused.detail, refused.attr) from refused
    except refusals.InvalidTransition as wrong:
        detail = _("A broadcast that is %(status)s can't be changed like this.") % {"status": wrong.status}
        raise Conflict("invalid_transition", detail) from wrong
