"""WAHA sessions by the hundred, paired at the simulator without the product's own steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import requests
from django.conf import settings

from bench.shop import Shop
from channels_waha import lifecycle
from channels_waha.models import ChannelSession
from messaging.models import Channel

_PAIRING_SECONDS = 60.0
_AT_ONCE = 8
# What brings echoes and acks; a session's own status would only be heard while it is made.
_EVENTS = ["message.any", "message.ack"]
_VERSION = "2026.7.1"


def pair(shop: Shop, channels: Sequence[Channel], *, name: str = "") -> None:
    """A session for each of these numbers, working, with webhooks to the product. ``name``: of the only one."""
    made = ChannelSession.unscoped.bulk_create(
        ChannelSession(
            organization=shop.organization,
            channel=channel,
            session_name=name or f"s-{channel.pk.hex}",
            display_name=channel.name,
            status=ChannelSession.Status.WORKING,
            is_wanted=True,
            server_version=_VERSION,
        )
        for channel in channels
    )
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_begin, made))


def pair_plain(name: str) -> None:
    """A session without webhooks."""
    _create(name, {})


def _begin(session: ChannelSession) -> None:
    wanted = lifecycle.wanted_configuration(session)
    wanted["webhooks"][0]["events"] = _EVENTS
    _create(session.session_name, wanted)


def _create(name: str, config: dict[str, object]) -> None:
    _ask("POST", "/api/sessions", {"name": name, "start": True, "config": config})
    give_up = time.monotonic() + _PAIRING_SECONDS
    phone = f"5511{abs(hash(name)) % 10**9:09}"
    while not _scan(name, phone):
        _wait(name, give_up)
    while _ask("GET", f"/api/sessions/{name}").json()["status"] != "WORKING":
        _wait(name, give_up)


def _scan(name: str, phone: str) -> bool:
    """Scan the QR code, if it is shown by now."""
    try:
        _ask("POST", f"/control/sessions/{name}/scan", {"phone": phone, "push_name": "Escola"})
    except requests.HTTPError:
        return False
    return True


def _wait(name: str, give_up: float) -> None:
    if time.monotonic() > give_up:
        raise TimeoutError(f"{name} does not connect")
    time.sleep(0.05)


def _ask(method: str, path: str, body: dict[str, object] | None = None) -> requests.Response:
    answer = requests.request(
        method,
        settings.WAHA_BASE_URL + path,
        json=body,
        headers={"X-Api-Key": settings.WAHA_API_KEY},
        timeout=30,
    )
    answer.raise_for_status()
    return answer
