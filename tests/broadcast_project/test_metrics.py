"""What Prometheus reads: who may, and that it is true and cheap."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging import cron, tallies
from messaging.models import Message
from tests.admin.conftest import Tenant, make_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant(db: Any) -> Tenant:
    return make_tenant("MINHA")


def scrape(**options: Any) -> Any:
    return Client().get("/metrics", **options)


def values(answer: Any) -> dict[str, float]:
    lines = answer.content.decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_a_token_opens_it_from_elsewhere(tenant: Tenant, settings: Any) -> None:
    settings.METRICS_TOKEN = "a" * 20
    away = {"REMOTE_ADDR": "203.0.113.7"}
    assert scrape(**away).status_code == 403
    assert scrape(headers={"Authorization": "Bearer outra"}, **away).status_code == 403
    assert scrape(headers={"Authorization": f"Bearer {'a' * 20}"}, **away).status_code == 200


@pytest.mark.parametrize("token", ["", "a" * 20])
def test_a_neighbour_needs_none_and_a_proxy_is_none(tenant: Tenant, settings: Any, token: str) -> None:
    settings.METRICS_TOKEN = token
    assert scrape().status_code == 200
    for name in ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via"):
        assert scrape(headers={name: "203.0.113.7"}).status_code == 403
    # An empty token opens nothing.
    assert scrape(headers={"Authorization": "Bearer "}, REMOTE_ADDR="203.0.113.7").status_code == 403


def test_it_tells_what_is_there(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "totals", lambda: {"sent": 7, "unknown": 1})
    Message.objects.of(tenant.organization).update(status="in_doubt")
    number = Message.objects.of(tenant.organization).count()
    cron.run("recover-stuck-messages")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lanes SET holds = '{gateway_failing}', next_at = now() - interval '1 s'")

    found = values(scrape())

    assert found['broadcast_messages_open{status="in_doubt"}'] == number > 0
    assert found['broadcast_lanes_held{hold="gateway_failing"}'] == 1
    assert found["broadcast_lanes_due"] == 1
    assert found["broadcast_oldest_open_event_seconds"] > 0
    assert found['broadcast_sends_total{outcome="sent"}'] == 7
    assert 0 <= found['broadcast_cron_age_seconds{name="recover-stuck-messages"}'] < 60


def test_it_names_no_tenant_and_costs_one_query(tenant: Tenant) -> None:
    with CaptureQueriesContext(connection) as queries:
        shown = scrape().content.decode()
    assert "minha" not in shown.lower()
    assert not re.search(r"\d{10}", re.sub(r"[\d.e+-]+\n", "\n", shown))
    assert len(queries) <= 1


def test_sends_are_counted_in_the_store() -> None:
    before = tallies.totals().get("sent", 0)
    tallies.count("sent")
    tallies.count_all({"sent": 2})
    tallies.flush()
    assert tallies.totals()["sent"] == before + 3
