"""Keys are issued once, stored as a digest, and end when they are revoked."""

from __future__ import annotations

import hmac
import json
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from events.models import Event
from events.services import SYSTEM
from permissions import ids, isolation, keys, selectors, services
from permissions.models import ApiKey, Membership, Organization, User
from tests import factories
from tests.factories import NOON

FORM = re.compile(r"cbk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")


def test_a_key_has_its_form_and_two_are_never_the_same() -> None:
    made = [keys.new() for _ in range(200)]

    assert all(FORM.fullmatch(key.plain) for key in made)
    assert len({key.public_id for key in made}) == len({key.plain for key in made}) == 200
    assert all(len(key.digest) == 64 and key.plain not in repr(key) for key in made)


@given(secret=st.text("abcXYZ019_-", min_size=43, max_size=43))
def test_a_secret_may_hold_the_separators(secret: str) -> None:
    assert keys.public_id_of(f"cbk_0a1b2c3d_{secret}") == "0a1b2c3d"


@given(text=st.text(max_size=60))
def test_other_texts_are_no_keys(text: str) -> None:
    assert keys.public_id_of(text) is None


class Issued:
    """A key issued to a member, with what to change."""

    def __init__(self, **changes: Any) -> None:
        self.place = factories.MembershipFactory.create()
        options: dict[str, Any] = {"organization": self.place.organization, "owner": self.place.user, "name": "ERP"}
        self.key, self.plain = services.issue_key(**(options | changes), actor=SYSTEM, now=NOON)


@pytest.mark.django_db
def test_only_a_digest_is_stored() -> None:
    issued = Issued()

    (row,) = ApiKey.unscoped.values()
    assert issued.plain not in repr(row)
    assert issued.plain[13:] not in repr(row)
    assert row["digest"] == keys.digest(issued.plain)
    assert row["scopes"] == ["broadcast:send"]
    found = selectors.usable_key(issued.plain, now=NOON)
    assert found == issued.key


@pytest.mark.django_db
def test_issuing_and_revoking_are_on_record() -> None:
    issued = Issued(scopes=["contacts:read", "broadcast:read", "contacts:read"])

    assert services.revoke_key(key=issued.key, actor=SYSTEM, now=NOON)
    assert not services.revoke_key(key=issued.key, actor=SYSTEM, now=NOON + timedelta(days=1))

    assert ApiKey.unscoped.get().revoked_at == NOON
    assert selectors.usable_key(issued.plain, now=NOON) is None
    events = Event.objects.order_by("id").values_list("type", "subject", "organization_id")
    subject = ids.encode("key", issued.key.pk)
    assert list(events) == [
        (kind, subject, issued.key.organization_id) for kind in ("api_key.issued", "api_key.revoked")
    ]
    data = Event.objects.order_by("id")[0].data
    assert data["scopes"] == ["broadcast:read", "contacts:read"]
    assert issued.plain[13:] not in repr(data)


@pytest.mark.django_db
def test_a_key_ends_at_its_moment() -> None:
    issued = Issued(expires_at=NOON + timedelta(days=1))

    assert selectors.usable_key(issued.plain, now=NOON + timedelta(days=1) - timedelta(microseconds=1))
    assert selectors.usable_key(issued.plain, now=NOON + timedelta(days=1)) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"scopes": ["broadcast:everything"]}, services.UnknownScope),
        ({"expires_at": NOON}, services.ExpiryInPast),
        ({"name": "  "}, ValidationError),
        ({"name": "a" * 121}, ValidationError),
    ],
)
def test_a_key_that_makes_no_sense_is_not_issued(changes: dict[str, Any], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        Issued(**changes)
    assert not ApiKey.unscoped.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"is_active": False}, {"user__is_active": False}])
def test_only_an_active_member_owns_a_key(change: dict[str, bool]) -> None:
    place = factories.MembershipFactory.create()
    Membership.unscoped.filter(pk=place.pk).update(is_active=change.get("is_active", True))
    User.objects.filter(pk=place.user_id).update(is_active=change.get("user__is_active", True))

    with pytest.raises(services.NotAMember):
        Issued(organization=place.organization, owner=place.user)
    with pytest.raises(services.NotAMember):
        Issued(organization=factories.OrganizationFactory.create(), owner=place.user)


def command(*arguments: str) -> str:
    out = StringIO()
    # As on a command line: in no scope but the command's own.
    with isolation.nowhere():
        call_command(*arguments, stdout=out)
    return out.getvalue()


def issue(place: Any, **changes: str) -> str:
    options = {"organization": place.organization.slug, "owner": place.user.username, "name": "ERP"} | changes
    arguments = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    return command("issue_api_key", *arguments)


@pytest.mark.django_db
def test_the_command_prints_the_key_alone() -> None:
    place = factories.MembershipFactory.create()

    printed = issue(place, scope="messages:send", expires_in_days="30")

    assert FORM.fullmatch(printed.removesuffix("\n"))
    key = selectors.usable_key(printed.strip(), now=timezone.now())
    assert key is not None
    assert (key.owner, key.organization, key.name) == (place.user, place.organization, "ERP")
    assert key.scopes == ["messages:send"]
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"organization": "nenhuma"}, "--organization"),
        ({"owner": "ninguem"}, "--owner"),
        ({"name": " "}, "--name"),
        ({"scope": "tudo"}, "--scope"),
        ({"expires_in_days": "0"}, "--expires-in-days"),
        ({"expires_in_days": "999999999"}, "--expires-in-days"),
        ({"expires_in_days": "um"}, "--expires-in-days"),
    ],
)
def test_the_command_names_the_argument_that_is_wrong(changes: dict[str, str], argument: str) -> None:
    with pytest.raises(CommandError, match=argument):
        issue(factories.MembershipFactory.create(), **changes)


@pytest.mark.django_db
def test_the_command_issues_nothing_to_a_stranger() -> None:
    place = factories.MembershipFactory.create()
    stranger = factories.UserFactory.create()

    with pytest.raises(CommandError, match="--owner"):
        issue(place, owner=stranger.username)


@pytest.mark.django_db
def test_a_key_is_revoked_by_its_id_or_by_itself() -> None:
    first, second = factories.ApiKeyFactory.create_batch(2)

    assert command("revoke_api_key", first.public_id) == f"{first.public_id} is revoked\n"
    assert command("revoke_api_key", second.plain) == f"{second.public_id} is revoked\n"
    assert command("revoke_api_key", first.public_id) == f"{first.public_id} was revoked before\n"
    assert not ApiKey.unscoped.filter(revoked_at=None).exists()


@pytest.mark.django_db
def test_an_unknown_key_is_not_revoked() -> None:
    with pytest.raises(CommandError, match="KEYID"):
        command("revoke_api_key", "zzzzzzzz")


@pytest.mark.django_db
def test_an_organization_is_made_with_its_admin() -> None:
    arguments = ("--name", "Padaria Sol", "--admin", "ana", "--region", "MX", "--time-zone", "America/Mexico_City")

    command("create_organization", "padaria-sol", *arguments)

    place = Membership.unscoped.select_related("organization", "user").get()
    made = place.organization
    assert (made.slug, made.name, made.region, made.time_zone) == (
        "padaria-sol",
        "Padaria Sol",
        "MX",
        "America/Mexico_City",
    )
    assert (place.role, place.user.username, place.user.is_staff) == ("admin", "ana", True)
    assert not place.user.has_usable_password()
    assert set(Event.objects.values_list("type", flat=True)) == {"organization.created", "membership.role_changed"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("slug", "changes", "argument"),
    [
        ("com_traço", {}, "slug"),
        ("Maior", {}, "slug"),
        ("a" * 25, {}, "slug"),
        ("tomada", {}, "slug"),
        ("loja", {"--region": "XX"}, "--region"),
        ("loja", {"--region": "br"}, "--region"),
        ("loja", {"--time-zone": "Brasil"}, "--time-zone"),
        ("loja", {"--name": " "}, "--name"),
        ("loja", {"--admin": "com espaço"}, "--admin"),
    ],
)
def test_half_an_organization_is_never_made(slug: str, changes: dict[str, str], argument: str) -> None:
    factories.OrganizationFactory.create(slug="tomada")
    options = {"--name": "Loja", "--admin": "ana"} | changes

    with pytest.raises(CommandError, match=argument):
        command("create_organization", slug, *(text for pair in options.items() for text in pair))
    assert Organization.objects.count() == 1
    assert not User.objects.exists()


@pytest.mark.django_db
def test_a_change_of_role_says_from_what_to_what() -> None:
    place = factories.MembershipFactory.create(role="viewer", is_active=False)

    for role in (Membership.Role.ATTENDANT, Membership.Role.ADMIN):
        services.set_role(organization=place.organization, user=place.user, role=role, actor=SYSTEM, now=NOON)

    assert Membership.unscoped.values_list("role", "is_active").get() == ("admin", True)
    assert list(Event.objects.order_by("id").values_list("data", flat=True)) == [
        {"from": None, "to": "attendant"},
        {"from": "attendant", "to": "admin"},
    ]


# --- rotation


@pytest.mark.django_db
def test_both_secrets_work_for_the_overlap_and_then_the_new_one() -> None:
    issued = Issued(expires_at=NOON + timedelta(days=30))

    plain = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON)

    assert FORM.fullmatch(plain)
    assert keys.public_id_of(plain) == issued.key.public_id
    last = NOON + timedelta(hours=24)
    for moment in (NOON, last - timedelta(microseconds=1)):
        assert selectors.usable_key(issued.plain, now=moment) == issued.key
        assert selectors.usable_key(plain, now=moment) == issued.key
    assert selectors.usable_key(issued.plain, now=last) is None
    assert selectors.usable_key(plain, now=last) == issued.key
    # The key's own end stays what it was.
    assert selectors.usable_key(plain, now=NOON + timedelta(days=30)) is None


@pytest.mark.django_db
def test_without_an_overlap_the_old_secret_ends_at_once() -> None:
    issued = Issued()

    plain = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON, overlap=timedelta(0))

    assert selectors.usable_key(issued.plain, now=NOON) is None
    assert selectors.usable_key(plain, now=NOON) == issued.key


@pytest.mark.django_db
def test_two_secrets_live_at_the_most() -> None:
    issued = Issued()

    second = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON)
    third = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON)

    usable = [selectors.usable_key(plain, now=NOON) is not None for plain in (issued.plain, second, third)]
    assert usable == [False, True, True]
    assert ApiKey.unscoped.count() == 1


@pytest.mark.django_db
def test_a_rotation_is_on_record_without_a_secret() -> None:
    issued = Issued()

    plain = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON, overlap=timedelta(hours=1))

    event = Event.objects.get(type="api_key.rotated")
    assert event.subject == ids.encode("key", issued.key.pk)
    assert event.data["previous_expires_at"] == (NOON + timedelta(hours=1)).isoformat()
    row = ApiKey.unscoped.values().get()
    for secret in (plain[13:], issued.plain[13:]):
        assert secret not in repr(event.data)
        assert secret not in repr(row)
    assert (row["rotated_at"], row["created_at"]) == (NOON, NOON)


@pytest.mark.django_db
def test_a_revoked_key_is_dead_with_both_its_secrets() -> None:
    issued = Issued()
    plain = services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON)

    services.revoke_key(key=issued.key, actor=SYSTEM, now=NOON)

    assert selectors.usable_key(plain, now=NOON) is None
    assert selectors.usable_key(issued.plain, now=NOON) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "overlap", "refusal"),
    [
        ({"revoked_at": NOON}, timedelta(hours=1), services.KeyEnded),
        ({"expires_at": NOON}, timedelta(hours=1), services.KeyEnded),
        ({}, timedelta(days=30, seconds=1), services.OverlapTooLong),
        ({}, timedelta(seconds=-1), services.OverlapTooLong),
    ],
)
def test_what_makes_no_sense_is_not_rotated(
    fields: dict[str, Any], overlap: timedelta, refusal: type[Exception]
) -> None:
    key = factories.ApiKeyFactory.create(**fields)

    with pytest.raises(refusal):
        services.rotate_key(key=key, actor=SYSTEM, now=NOON, overlap=overlap)
    assert ApiKey.unscoped.values_list("digest", "rotated_at").get() == (keys.digest(key.plain), None)


@pytest.mark.django_db
def test_the_key_of_someone_who_left_is_not_rotated() -> None:
    issued = Issued()
    Membership.unscoped.update(is_active=False)

    with pytest.raises(services.NotAMember):
        services.rotate_key(key=issued.key, actor=SYSTEM, now=NOON)


@pytest.mark.django_db
def test_a_wrong_secret_costs_the_same_comparisons_as_an_unknown_id(monkeypatch: pytest.MonkeyPatch) -> None:
    key = factories.ApiKeyFactory.create()
    asked: list[tuple[str, str]] = []
    real = hmac.compare_digest

    def compare(given: str, stored: str) -> bool:
        asked.append((given, stored))
        return real(given, stored)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for plain in (key.plain, f"{key.plain[:13]}{'x' * 43}", f"cbk_zzzzzzzz_{'x' * 43}"):
        asked.clear()
        selectors.usable_key(plain, now=NOON)
        assert [(len(given), len(stored)) for given, stored in asked] == [(64, 64), (64, 64)]


@pytest.mark.django_db
def test_the_command_rotates_and_prints_the_key_alone() -> None:
    key = factories.ApiKeyFactory.create()

    printed = command("rotate_api_key", key.public_id, "--overlap", "90m")

    assert FORM.fullmatch(printed.removesuffix("\n"))
    row = ApiKey.unscoped.get()
    assert row.rotated_at is not None
    assert row.previous_expires_at == row.rotated_at + timedelta(minutes=90)
    for plain in (printed.strip(), key.plain):
        assert selectors.usable_key(plain, now=timezone.now()) == key


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("zzzzzzzz",), "KEYID"),
        (("--overlap", "24"), "--overlap"),
        (("--overlap", "-1h"), "--overlap"),
        (("--overlap", "31d"), "--overlap"),
        (("--overlap", "amanhã"), "--overlap"),
    ],
)
def test_the_rotation_names_the_argument_that_is_wrong(arguments: tuple[str, ...], named: str) -> None:
    key = factories.ApiKeyFactory.create()
    given = arguments if named == "KEYID" else (key.public_id, *arguments)

    with pytest.raises(CommandError, match=named):
        command("rotate_api_key", *given)
    assert ApiKey.unscoped.get().rotated_at is None


@pytest.mark.django_db
def test_keys_are_listed_without_a_secret() -> None:
    first = factories.ApiKeyFactory.create(name="ERP", scopes=["broadcast:send", "messages:read"])
    other = factories.ApiKeyFactory.create(revoked_at=timezone.now())

    table = command("list_api_keys")

    head, line = table.splitlines()
    assert head.split()[0] == "id"
    assert line.split()[:5] == [first.public_id, first.organization.slug, first.owner.username, "ERP", "active"]
    assert "broadcast:send messages:read" in line
    assert other.public_id not in table
    assert first.digest not in table

    everything = command("list_api_keys", "--all", "--organization", other.organization.slug, "--json")
    (row,) = [json.loads(text) for text in everything.splitlines()]
    assert (row["id"], row["state"], row["last used"]) == (other.public_id, "revoked", "-")
    with pytest.raises(CommandError, match="--organization"):
        command("list_api_keys", "--organization", "nenhuma")


@pytest.mark.django_db
def test_the_list_costs_one_query_however_long(django_assert_num_queries: Any) -> None:
    factories.ApiKeyFactory.create_batch(3)

    with django_assert_num_queries(1):
        assert len(command("list_api_keys").splitlines()) == 4
