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
    secret = plain.rpartition("_")[2]
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
