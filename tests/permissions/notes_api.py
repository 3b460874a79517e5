"""The smallest API that uses everything of ``permissions.api``: notes, which are teams by another name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.urls import path
from rest_framework import serializers
from rest_framework.response import Response

from permissions import ids
from permissions.api.authentication import ApiRequest
from permissions.api.idempotency import idempotent
from permissions.api.pagination import CursorPagination
from permissions.api.parsers import StrictMultiPartParser
from permissions.api.refusals import Conflict, Problem, RuleViolation
from permissions.api.serializers import (
    BooleanField,
    IntegerField,
    PrefixedIdField,
    StrictSerializer,
    TextField,
    TimeField,
    get_or_404,
)
from permissions.api.views import ApiView
from permissions.models import Scope, Team


class NoteSerializer(StrictSerializer):
    name = TextField(max_length=120)
    size = IntegerField(required=False, min_value=1)
    loud = BooleanField(required=False)
    at = TimeField(required=False)
    team_id = PrefixedIdField(ids.TEAM, required=False)
    kind = serializers.ChoiceField(choices=["a", "b"], required=False)
    variables = serializers.DictField(child=TextField(allow_blank=True), required=False)
    variations = serializers.ListField(child=TextField(), required=False, max_length=5)


def shown(team: Team) -> dict[str, Any]:
    return {"id": ids.encode(ids.TEAM, team.pk), "name": team.name, "created_at": team.created_at}


class Notes(ApiView):
    required_scopes: ClassVar = {"GET": Scope.BROADCAST_READ, "POST": Scope.BROADCAST_SEND}

    def get(self, request: ApiRequest) -> Response:
        pages = CursorPagination()
        page = pages.paginate_queryset(Team.objects.of(self.organization), request, view=self)
        assert page is not None
        return pages.get_paginated_response([shown(team) for team in page])

    @idempotent()
    def post(self, request: ApiRequest) -> Response:
        serializer = NoteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        name = serializer.validated_data["name"]
        if name == "regra":
            raise RuleViolation("against_a_rule", "Não pode.", "name")
        if name == "regras":
            raise RuleViolation.of([Problem("one", "Um.", "variations.2"), Problem("two", "Dois.")])
        if name == "conflito":
            raise Conflict("invalid_transition", "Agora não.")
        team = Team.objects.create(organization=self.organization, name=name)
        if name == "erro":
            raise ZeroDivisionError("segredo: Ana, +5511999990001")
        return Response(shown(team), status=201, headers={"Location": f"/api/v1/notes/{team.pk.hex}"})


class Note(ApiView):
    required_scopes: ClassVar = {"GET": Scope.BROADCAST_READ, "DELETE": Scope.CHANNELS_MANAGE}
    max_body_bytes = 10

    def get(self, request: ApiRequest, note: str) -> Response:
        return Response(shown(get_or_404(Team.objects.of(self.organization), ids.TEAM, note, code="note_not_found")))

    def delete(self, request: ApiRequest, note: str) -> Response:
        return Response({"given": request.data})


# A system elsewhere, which makes a thing once under each id that it is given; and what happens on the way.
SHELF: dict[UUID, str] = {}
BEFORE: list[Callable[[], None]] = []
AFTER: list[Callable[[], None]] = []


class RemoteNotes(ApiView):
    """Makes notes elsewhere, over the network."""

    required_scopes: ClassVar = {"POST": Scope.BROADCAST_SEND}

    @idempotent(network=timedelta(seconds=60))
    def post(self, request: ApiRequest) -> Response:
        serializer = NoteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        name = SHELF.get(request.effect_id)
        if name is None:
            _happen(BEFORE)
            name = SHELF[request.effect_id] = serializer.validated_data["name"]
        _happen(AFTER)
        return Response({"id": request.effect_id.hex, "name": name}, status=201)


def _happen(what: list[Callable[[], None]]) -> None:
    if what:
        what.pop(0)()


class Files(ApiView):
    required_scopes: ClassVar = {"POST": Scope.BROADCAST_SEND}
    parser_classes = [StrictMultiPartParser]

    @idempotent()
    def post(self, request: ApiRequest) -> Response:
        given: Any = request.data
        file = given["file"]
        team = Team.objects.create(organization=self.organization, name=f"{given['name']} {file.name}")
        return Response({"size": len(file.read()), "name": team.name}, status=201)


class Careless(ApiView):
    """Names no scope for what it answers."""

    required_scopes: ClassVar[dict[str, str]] = {}

    def get(self, request: ApiRequest) -> Response:
        raise AssertionError("never reached")


def login(request: HttpRequest) -> HttpResponse:
    """A page of the console: it sets the cookie of the CSRF token."""
    return HttpResponse(get_token(request))


urlpatterns = [
    path("login", login),
    path("api/v1/notes", Notes.as_view()),
    path("api/v1/notes/<str:note>", Note.as_view()),
    path("api/v1/remote-notes", RemoteNotes.as_view()),
    path("api/v1/files", Files.as_view()),
    path("api/v1/careless", Careless.as_view()),
    path("webhooks/careless", Careless.as_view()),
]

handler400 = "permissions.api.fallbacks.bad_request"
handler403 = "permissions.api.fallbacks.permission_denied"
handler404 = "permissions.api.fallbacks.page_not_found"
handler500 = "permissions.api.fallbacks.server_error"
