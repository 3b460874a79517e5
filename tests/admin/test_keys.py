"""API keys in the console: shown once, revoked for good."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from permissions import keys, selectors
from permissions.models import ApiKey
from tests.admin.conftest import Page, Tenant, registered, text_of

pytestmark = pytest.mark.django_db

ADD = "admin:permissions_apikey_add"


def issue(browser: Client, mine: Tenant, **more: object) -> tuple[ApiKey, str]:
    data = {"organization": mine.organization.pk, "owner": mine.leader.pk, "name": "Loja", "scopes": ["broadcast:send"]}
    response = browser.post(reverse(ADD), data | more)
    assert "no-store" in response["Cache-Control"]
    (plain,) = set(re.findall(r"cbk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", text_of(response)))
    return ApiKey.objects.of(mine.organization).get(public_id=keys.public_id_of(plain)), plain


def test_a_key_is_shown_once_and_works(mine: Tenant, boss: Client, page: Page) -> None:
    key, plain = issue(boss, mine)

    assert selectors.usable_key(plain, now=timezone.now()) == key
    # The secret itself may hold underscores.
    secret = plain.removeprefix(f"cbk_{key.public_id}_")
    for address in (page(key), page(key, "history"), reverse("admin:permissions_apikey_changelist"), "/admin/"):
        shown = text_of(boss.get(address))
        assert secret not in shown
        assert key.digest not in shown


def test_a_key_with_an_expiry(mine: Tenant, boss: Client) -> None:
    day = timezone.localtime() + timedelta(days=3)
    key, _plain = issue(boss, mine, expires_at_0=f"{day:%d/%m/%Y}", expires_at_1="12:00")
    assert key.expires_at is not None
    assert timezone.localtime(key.expires_at).date() == day.date()

    data = {"organization": mine.organization.pk, "owner": mine.leader.pk, "name": "x", "scopes": ["broadcast:send"]}
    past = boss.post(reverse(ADD), data | {"expires_at_0": "01/01/2020", "expires_at_1": "12:00"})
    assert "passado" in str(past.context["form"].errors)


def test_a_revoked_key_is_dead(mine: Tenant, boss: Client, page: Page) -> None:
    key, plain = issue(boss, mine)

    asked = boss.get(page(key, "revoke"))
    assert asked.status_code == 200
    assert selectors.usable_key(plain, now=timezone.now()) == key

    boss.post(page(key, "revoke"))
    assert selectors.usable_key(plain, now=timezone.now()) is None
    assert "revogada" in text_of(boss.get(page(key)))


def test_secrets_of_sessions_are_on_no_page(mine: Tenant, super_admin: Client, page: Page) -> None:
    session = mine.session
    for model, _page in registered():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        assert session.webhook_secret not in text_of(super_admin.get(reverse(name)))
    assert session.webhook_secret not in text_of(super_admin.get(page(session)))


def test_a_rotated_key_is_shown_once_and_the_old_one_lives_on(mine: Tenant, boss: Client, page: Page) -> None:
    key, old = issue(boss, mine)
    asked = text_of(boss.get(page(key, "rotate")))
    assert "24 horas" in asked

    response = boss.post(page(key, "rotate"), {"hours": "24"})

    assert "no-store" in response["Cache-Control"]
    (new,) = set(re.findall(r"cbk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", text_of(response)))
    assert new != old
    now = timezone.now()
    assert selectors.usable_key(new, now=now) == selectors.usable_key(old, now=now) == key
    assert selectors.usable_key(old, now=now + timedelta(hours=25)) is None
    assert new.rpartition("_")[2] not in text_of(boss.get(page(key)))


def test_a_rotation_asks_for_a_time_that_it_offers(mine: Tenant, boss: Client, page: Page) -> None:
    key, plain = issue(boss, mine)

    for hours in ("", "2", "-1", "99999"):
        response = boss.post(page(key, "rotate"), {"hours": hours})
        assert response.context["form"].errors["hours"]
    assert ApiKey.unscoped.get(pk=key.pk).rotated_at is None
    boss.post(page(key, "rotate"), {"hours": "0"})
    assert selectors.usable_key(plain, now=timezone.now()) is None


def test_a_key_that_has_ended_is_not_rotated(mine: Tenant, boss: Client, page: Page) -> None:
    key, _plain = issue(boss, mine)
    boss.post(page(key, "revoke"))

    assert page(key, "rotate") not in text_of(boss.get(page(key)))
    assert boss.post(page(key, "rotate"), {"hours": "24"}).status_code == 302
    assert ApiKey.unscoped.get(pk=key.pk).rotated_at is None
