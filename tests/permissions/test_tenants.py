"""The query without a tenant is the awkward one; ids and secrets show outside what they should."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from channels_waha.models import ChannelSession
from permissions import encryption, ids
from permissions.managers import TenantManager, UnscopedQuery
from permissions.models import Team, TenantModel
from tests import factories

TENANT_MODELS = [model for model in apps.get_models() if issubclass(model, TenantModel)]

Query = Callable[[], object]


@pytest.mark.parametrize(
    "query",
    [
        lambda: Team.objects.all(),
        lambda: Team.objects.filter(name="a"),
        lambda: Team.objects.get(name="a"),
        lambda: Team.objects.exclude(name="a"),
        lambda: Team.objects.first(),
        lambda: Team.objects.count(),
        lambda: Team.objects.values_list("id"),
        lambda: Team.objects.update(name="a"),
        lambda: Team.objects.get_or_create(name="a"),
        lambda: Team.objects.bulk_create([]),
        lambda: Team.objects.in_bulk(),
        lambda: Team.objects.create(name="a"),
    ],
)
def test_a_query_across_tenants_is_refused(query: Query) -> None:
    with pytest.raises(UnscopedQuery):
        query()


@pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model.__name__)
def test_every_tenants_row_has_such_a_manager(model: type[TenantModel]) -> None:
    assert isinstance(model.objects, TenantManager)
    assert not model._meta.get_field("organization").null
    with pytest.raises(UnscopedQuery):
        model.objects.all()


@pytest.mark.django_db
def test_a_query_of_a_tenant_sees_its_rows() -> None:
    ours, theirs = factories.TeamFactory.create_batch(2)

    assert list(Team.objects.of(ours.organization)) == [ours]
    assert list(Team.objects.of(ours.organization_id)) == [ours]
    assert set(Team.unscoped.all()) == {ours, theirs}


@pytest.mark.django_db
def test_relations_still_find_their_rows() -> None:
    leader = factories.TeamMemberFactory.create()

    assert list(leader.team.members.all()) == [leader]
    assert Team.objects.create(organization=leader.organization, name="outro").pk


def test_ids_show_their_kind_and_come_back() -> None:
    value = ids.new_id()

    assert value.version == 7
    assert ids.decode("bc", ids.encode("bc", value)) == value
    assert ids.encode("bc", value) == f"bc_{value.hex}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bc",
        "bc_",
        "grp_" + "0" * 32,
        "bc_" + "0" * 31,
        "bc_" + "0" * 33,
        "bc_" + "g" * 32,
        "bc_" + "٣" * 32,
        "bc_{" + "0" * 30 + "}",
        "bc_0" + "_" * 31,
        "bc_" + str(UUID(int=0)),
        "\x00bc_" + "0" * 32,
    ],
)
def test_another_form_is_no_id(text: str) -> None:
    assert ids.decode("bc", text) is None


@given(text=st.text())
def test_no_text_breaks_the_reading_of_ids(text: str) -> None:
    assert ids.decode("bc", text) is None
    ids.decode("bc", f"bc_{text}")


def test_ids_are_ordered_by_time() -> None:
    made = [ids.new_id() for _ in range(1000)]

    assert made == sorted(made)


@pytest.mark.django_db
def test_the_database_never_sees_a_secret() -> None:
    session = factories.ChannelSessionFactory.create(webhook_secret="segredo de teste", previous_webhook_secret="")

    with connection.cursor() as cursor:
        cursor.execute("SELECT webhook_secret, previous_webhook_secret FROM channel_sessions")
        ((stored, empty),) = cursor.fetchall()
    assert "segredo" not in stored
    assert empty == ""
    assert ChannelSession.objects.of(session.organization).get().webhook_secret == "segredo de teste"


def test_keys_rotate(settings: LazySettings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = ["antiga"]
    old = encryption.encrypt("olá")

    settings.FIELD_ENCRYPTION_KEYS = ["nova", "antiga"]
    new = encryption.encrypt("olá")
    assert encryption.decrypt(old) == encryption.decrypt(new) == "olá"

    settings.FIELD_ENCRYPTION_KEYS = ["nova"]
    assert encryption.decrypt(new) == "olá"
    with pytest.raises(encryption.SecretUnreadable):
        encryption.decrypt(old)
    with pytest.raises(encryption.SecretUnreadable):
        encryption.decrypt("no token")
