"""The database holds every statement to the tenant of the code that runs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest
from celery import current_app
from django.db import ProgrammingError, connection, transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory

from events.models import Event
from messaging import db
from permissions import isolation
from permissions.isolation import NoScope, Sweep
from permissions.middleware import TenantScopeMiddleware
from permissions.models import Organization, Team
from permissions.tasks import BeatTask, ScopedTask
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def ours() -> Organization:
    return factories.TeamFactory.create().organization


@pytest.fixture
def theirs() -> Organization:
    return factories.TeamFactory.create().organization


def teams() -> set[UUID]:
    """Whose teams an unfiltered query finds."""
    return set(Team.unscoped.values_list("organization_id", flat=True))


def test_a_forgotten_filter_finds_nothing_of_others(ours: Organization, theirs: Organization) -> None:
    with isolation.of(ours.pk):
        assert teams() == {ours.pk}
        assert set(Organization.objects.all()) == {ours}
    with isolation.of(ours.pk, theirs.pk):
        assert teams() == {ours.pk, theirs.pk}
    with isolation.of():
        assert teams() == set()


def test_a_forgotten_scope_is_an_error(ours: Organization) -> None:
    with isolation.nowhere(), pytest.raises(NoScope), transaction.atomic():
        teams()
    with isolation.nowhere(), pytest.raises(NoScope), transaction.atomic():
        db.rows("SELECT 1 FROM teams")


@pytest.mark.django_db(transaction=True)
def test_a_scope_ends_with_its_statement(ours: Organization) -> None:
    with isolation.of(ours.pk):
        assert teams() == {ours.pk}
        assert db.rows("SELECT organization_id FROM teams") == [(ours.pk,)]
    with isolation.nowhere():
        for _ in range(2):
            with pytest.raises(NoScope):
                teams()
            with pytest.raises(NoScope):
                db.rows("SELECT 1 FROM teams")


@pytest.mark.django_db(transaction=True)
def test_a_transaction_follows_its_scopes(ours: Organization, theirs: Organization) -> None:
    def seen() -> set[UUID]:
        prepared = {key for (key,) in db.rows("SELECT organization_id FROM teams")}
        assert prepared == teams()
        return prepared

    with isolation.of(ours.pk), transaction.atomic():
        assert seen() == {ours.pk}
        with isolation.across_tenants(Sweep.COMMAND):
            assert seen() == {ours.pk, theirs.pk}
            with isolation.of(theirs.pk), transaction.atomic():
                assert seen() == {theirs.pk}
            assert seen() == {ours.pk, theirs.pk}
        assert seen() == {ours.pk}
        with suppress(RuntimeError), transaction.atomic(), isolation.of(theirs.pk):
            assert seen() == {theirs.pk}
            raise RuntimeError
        assert seen() == {ours.pk}
        with pytest.raises(ProgrammingError), transaction.atomic(), isolation.of(theirs.pk):
            Team.unscoped.extra(where=["no_such_column"]).count()
        assert seen() == {ours.pk}


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_the_engine_begins_is_told_all_the_same(ours: Organization) -> None:
    """As a failed send is settled, twice on one connection: the engine's word first, then the timeline's."""
    with isolation.of(ours.pk):
        for _ in range(2):
            with transaction.atomic():
                db.engine("SELECT engine_free(%s)", [1])
                assert teams() == {ours.pk}


def test_nobody_writes_into_another_tenant(ours: Organization, theirs: Organization) -> None:
    team = Team.objects.of(theirs).get()
    with isolation.of(ours.pk):
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            Team.objects.create(organization=theirs, name="Intrusos")
        assert Team.unscoped.filter(pk=team.pk).update(name="Outro") == 0
        assert Team.unscoped.filter(pk=team.pk).delete() == (0, {})
        own = Team.objects.of(ours).get()
        own.organization = theirs
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            own.save()


def test_rows_of_nobody_are_seen_by_sweeps_alone(ours: Organization) -> None:
    Event.objects.create(type="sign_in", subject="", actor_type="system", organization=None)
    with isolation.of(ours.pk):
        assert not Event.objects.filter(organization=None).exists()
    with isolation.across_tenants(Sweep.SUPER_ADMIN):
        assert Event.objects.filter(organization=None).exists()


@pytest.mark.django_db(transaction=True)
def test_rows_in_pages_and_many_at_once_are_held_too(ours: Organization, theirs: Organization) -> None:
    with isolation.of(ours.pk):
        # Outside of a transaction and inside of one, where they come by a cursor of the server.
        assert [team.organization_id for team in Team.unscoped.iterator(chunk_size=1)] == [ours.pk]
        with transaction.atomic():
            assert [team.organization_id for team in Team.unscoped.iterator(chunk_size=1)] == [ours.pk]
        with connection.cursor() as cursor:
            cursor.executemany("UPDATE teams SET name = name || %s WHERE organization_id = %s", [("!", theirs.pk)])
            assert cursor.rowcount == 0


def test_a_thread_begins_without_any_scope(ours: Organization) -> None:
    seen: list[isolation.Scope] = []
    with isolation.of(ours.pk):
        thread = threading.Thread(target=lambda: seen.append(isolation.current()))
        thread.start()
        thread.join()
    assert seen == [isolation.NOWHERE]


def test_what_is_streamed_goes_on_in_the_scope_of_its_answer(ours: Organization, rf: RequestFactory) -> None:
    def parts() -> Iterator[bytes]:
        for key in teams():
            yield str(key).encode()

    def view(_request: HttpRequest) -> StreamingHttpResponse:
        isolation.settle_in(ours.pk)
        return StreamingHttpResponse(parts())

    response = TenantScopeMiddleware(view)(rf.get("/api/v1/x"))
    assert isinstance(response, StreamingHttpResponse)
    with isolation.nowhere():
        assert list(response) == [str(ours.pk).encode()]
        assert isolation.current() == isolation.NOWHERE


def test_a_request_starts_and_ends_in_no_scope(ours: Organization, rf: RequestFactory) -> None:
    seen: list[isolation.Scope] = []

    def view(_request: HttpRequest) -> StreamingHttpResponse:
        seen.append(isolation.current())
        isolation.settle_in(ours.pk)
        return StreamingHttpResponse([])

    with isolation.of(ours.pk):
        TenantScopeMiddleware(view)(rf.get("/api/v1/x"))
        assert isolation.current() == isolation.scope_of([ours.pk])
    assert seen == [isolation.NOWHERE]


def test_a_task_runs_in_the_scope_of_its_organization(ours: Organization, theirs: Organization) -> None:
    @current_app.task(base=ScopedTask, name="tests.look")
    def look(**_options: str) -> set[UUID]:
        return teams()

    assert look(organization_id=str(ours.pk)) == {ours.pk}
    with pytest.raises(NoScope), transaction.atomic():
        look()


def test_a_periodic_task_looks_across_tenants(ours: Organization, theirs: Organization) -> None:
    @current_app.task(base=BeatTask, name="tests.sweep")
    def sweep() -> set[UUID]:
        return teams()

    with isolation.nowhere():
        assert sweep() == {ours.pk, theirs.pk}


def test_a_super_admins_look_across_tenants_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "permissions.isolation"), isolation.across_tenants(Sweep.SUPER_ADMIN, "u-1"):
        pass
    assert caplog.messages == ["across tenants: super-admin u-1"]
