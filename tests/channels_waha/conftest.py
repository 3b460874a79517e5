"""A session row, a simulated WAHA, and both together with our own web server listening."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from channels_waha import client, services
from channels_waha.models import ChannelSession
from events.services import SYSTEM
from messaging import db
from messaging.models import Channel, Lane
from tests.factories import OrganizationFactory
from tests.simulator_client import SimulatorControl, SimulatorProcess

SCALE = 0.05
SECONDS = 15.0


@pytest.fixture(scope="session")
def simulator() -> Iterator[SimulatorProcess]:
    """A WAHA of today, fast."""
    with SimulatorProcess(time_scale=SCALE, options=("--ack-delays", "1,2,3")) as process:
        yield process


@pytest.fixture
def make_session(db: None) -> Callable[..., ChannelSession]:
    """A number that is still to be connected; pass ``organization=`` for a second one of it."""

    def make(**fields: Any) -> ChannelSession:
        organization = fields.get("organization") or OrganizationFactory.create()
        return services.create_session(
            organization=organization, display_name="Balcão", actor=SYSTEM, now=database_now()
        )

    return make


@pytest.fixture
def session(make_session: Callable[..., ChannelSession]) -> ChannelSession:
    return make_session()


@pytest.fixture
def waha(simulator: SimulatorProcess, settings: Settings, live_server: LiveServer) -> Iterator[SimulatorControl]:
    """The simulator as our WAHA, posting to our live server. Its sessions are gone afterwards."""
    settings.WAHA_BASE_URL = simulator.url
    settings.WAHA_API_KEY = simulator.api_key
    settings.WEBHOOK_BASE_URL = live_server.url
    control = simulator.control
    yield control
    control.clear_faults()
    for found in control.state()["sessions"]:
        delete_session(simulator, found["name"])


def delete_session(simulator: SimulatorProcess, name: str) -> None:
    server = client.Server(simulator.url, simulator.api_key)
    client.call(server, "DELETE", f"/api/sessions/{name}", deadline=time.monotonic() + SECONDS)


def database_now() -> datetime:
    return db.database_now()


def signed(session: ChannelSession, event: Any, *, secret: str | None = None, **headers: str) -> dict[str, Any]:
    """Arguments for the test client's ``post``: a delivery as WAHA signs it."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    key = session.webhook_secret if secret is None else secret
    signature = hmac.new(key.encode(), body, hashlib.sha512).hexdigest()
    return {
        "path": f"/api/v1/webhooks/waha/{session.session_name}",
        "data": body,
        "content_type": "application/json",
        "headers": {"X-Webhook-Hmac": signature, "X-Webhook-Request-Id": "request-1"} | headers,
    }


def envelope(session: ChannelSession, event: str, payload: Any, **more: Any) -> dict[str, Any]:
    stamp = int(database_now().timestamp() * 1000)
    return {"event": event, "session": session.session_name, "timestamp": stamp, "payload": payload} | more


def lane_of(session: ChannelSession) -> dict[str, Any]:
    return dict(Lane.objects.filter(pk=session.channel_id).values().get())


def state_of(session: ChannelSession) -> str:
    return Channel.unscoped.get(pk=session.channel_id).state
