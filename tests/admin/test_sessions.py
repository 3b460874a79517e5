"""Pairing a number in the console, against the simulator of WAHA."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from channels_waha import services
from channels_waha.models import ChannelSession
from permissions.models import Membership
from tests import waiting
from tests.admin.conftest import Page, Tenant, make_tenant, text_of
from tests.simulator_client import SimulatorControl, SimulatorProcess

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "admin:channels_waha_channelsession_add"


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess(time_scale=0.02) as process:
        yield process


@pytest.fixture
def waha(simulator: SimulatorProcess, settings: Settings, live_server: LiveServer) -> SimulatorControl:
    settings.WAHA_BASE_URL = simulator.url
    settings.WAHA_API_KEY = simulator.api_key
    settings.WEBHOOK_BASE_URL = live_server.url
    return simulator.control


def test_a_number_is_paired_from_the_empty_console(
    waha: SimulatorControl, mine: Tenant, boss: Client, page: Page
) -> None:
    added = boss.post(reverse(ADD), {"organization": mine.organization.pk, "display_name": "Vendas"})
    session = ChannelSession.objects.of(mine.organization).get(display_name="Vendas")
    assert added["Location"] == page(session, "connect")
    assert boss.post(page(session, "connect"))["Location"] == page(session, "pair")

    assert waiting.until(lambda: "Escaneie agora" in text_of(boss.get(page(session, "pairing"))))
    picture = boss.get(page(session, "qr"))
    assert picture["Content-Type"] == "image/png"
    assert "no-store" in picture["Cache-Control"]
    assert picture.content.startswith(b"\x89PNG")

    waha.pair(session.session_name, phone="5511999990077")
    assert waiting.until(lambda: "Conectado! +5511999990077" in text_of(boss.get(page(session, "pairing"))))
    last = boss.get(page(session, "pairing"))
    assert last["X-Live"] == "1"
    assert 'data-live=""' in text_of(last)
    assert boss.get(page(session, "qr")).status_code == 404

    assert boss.post(page(session, "stop")).status_code == 302
    session.refresh_from_db()
    assert (session.status, session.is_wanted) == ("STOPPED", False)


def test_waha_that_is_away_is_said_in_words(settings: Settings, mine: Tenant, boss: Client, page: Page) -> None:
    settings.WAHA_BASE_URL, settings.WAHA_API_KEY = "http://127.0.0.1:9", "key"
    ChannelSession.unscoped.filter(pk=mine.session.pk).update(status="SCAN_QR_CODE")

    assert boss.get(page(mine.session, "qr")).status_code == 502
    polled = boss.get(page(mine.session, "pairing"))
    assert polled.status_code == 200
    assert "não foi possível falar com o WAHA" in text_of(polled)
    asked = boss.post(page(mine.session, "connect"))
    assert asked.status_code == 200
    assert asked.context["form"].non_field_errors()


def test_only_admins_pair(mine: Tenant, page: Page) -> None:
    viewer = mine.staff(Membership.Role.VIEWER)
    for name in ("pair", "pairing", "qr", "connect", "stop", "relink"):
        assert viewer.get(page(mine.session, name)).status_code == 403, name


def test_another_phone_is_confirmed_by_a_person(mine: Tenant, boss: Client, page: Page) -> None:
    session = mine.session
    ChannelSession.unscoped.filter(pk=session.pk).update(metadata={services.PHONE_BEFORE: "+5511900000000"})

    assert boss.post(page(session, "confirm-phone")).status_code == 302

    session.refresh_from_db()
    assert session.metadata == {}


def test_states_are_words(db: None) -> None:
    tenant = make_tenant("ESTADO")
    browser = tenant.staff(Membership.Role.ADMIN)
    address = reverse("admin:channels_waha_channelsession_changelist")
    for status, words in (("WORKING", "Conectado"), ("FAILED", "Falhou"), ("NEW_WORD", "NEW_WORD")):
        ChannelSession.unscoped.filter(pk=tenant.session.pk).update(status=status)
        assert words in text_of(browser.get(address))
