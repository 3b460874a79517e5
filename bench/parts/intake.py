"""Webhooks: signed post → raw row, beside a bare view that inserts one row, under the same server."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils import timezone

from bench import load, machine
from bench.figures import Figure, WrongResult, by_turns
from bench.load import Load
from bench.machine import spent
from bench.options import Options
from bench.shop import open_shop
from broadcast_project.demo.stage import free_port
from broadcast_project.supervisor import product
from channels_waha import services as waha
from channels_waha.models import ChannelSession
from events import services as events
from messaging.models import WebhookEvent

_READY_SECONDS = 60.0


def run(options: Options) -> list[Figure]:
    shop = open_shop("intake")
    session = waha.create_session(
        organization=shop.organization, display_name="n1", actor=events.user(shop.root), now=timezone.now()
    )
    subprocess.run([sys.executable, "-m", "bench.usual.tables"], check=True)
    with _server("broadcast_project.wsgi:application") as ours, _server("bench.usual.wsgi:application") as bare:
        product_load = Load(ours, lambda number: _signed(session, number))
        bare_load = Load(bare, lambda number: load.request("/hook", _event(session, number), {}))
        for warm_up in (product_load, bare_load):
            warm_up.run(options.seconds / 3)
        before, posted = machine.processor_seconds(os.getppid()), (product_load.answered, bare_load.answered)
        rates = by_turns(
            options.rounds,
            {
                "product": lambda: product_load.run(options.seconds),
                "bare": lambda: bare_load.run(options.seconds),
            },
        )
        used = machine.processor_seconds(os.getppid())
        ours_cpu = spent({"web": before.get("web", 0)}, {"web": used["web"]}, product_load.answered - posted[0])
        bare_cpu = spent(
            {"bare web": before.get("bare web", 0)}, {"bare web": used["bare web"]}, bare_load.answered - posted[1]
        )
        checked = _check(product_load, bare_load)
    return [
        Figure(
            what="webhooks: signed post → raw row",
            unit="post",
            ours=statistics.median(rates["product"]),
            against="a view with one insert, same server",
            theirs=statistics.median(rates["bare"]),
            floor=0.25,
            cpu={**ours_cpu, **bare_cpu},
            checked=checked,
        )
    ]


@contextmanager
def _server(application: str) -> Iterator[int]:
    """The product's own web server with its own flags, around any application; its port."""
    port = free_port()
    web = product.processes(port)[0]
    command = [*web.command[:-1], application]
    environment = {**os.environ, **web.env, "PORT": str(port)}
    if application.startswith("bench"):
        environment["DJANGO_SETTINGS_MODULE"] = "bench.usual.settings"
    server = subprocess.Popen(command, env=environment, cwd=product.ROOT, stdout=sys.stderr)  # noqa: S603 - our own command
    try:
        _wait_for(port)
        yield port
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(port: int) -> None:
    give_up = time.monotonic() + _READY_SECONDS
    while not product.taken(port):
        if time.monotonic() > give_up:
            raise TimeoutError("the web server does not listen")
        time.sleep(0.1)


def _event(session: ChannelSession, number: int) -> bytes:
    """An inbound message as WAHA posts it, about a kilobyte."""
    message_id = f"false_5511999990001@c.us_3EB0{number:018X}"
    payload = {
        "id": message_id,
        "timestamp": 1_780_000_000 + number,
        "from": "5511999990001@c.us",
        "fromMe": False,
        "source": "app",
        "to": "5511970000001@c.us",
        "body": "Olá! Ainda tem vaga na turma de quinta à noite? " * 4,
        "hasMedia": False,
        "ack": 1,
        "_data": {"key": {"remoteJid": "5511999990001@s.whatsapp.net", "id": message_id}, "pushName": "Ana" * 40},
    }
    event = {
        "id": f"evt_{number:026}",
        "timestamp": 1_780_000_000_000 + number,
        "event": "message.any",
        "session": session.session_name,
        "engine": "NOWEB",
        "payload": payload,
    }
    return json.dumps(event, ensure_ascii=False).encode()


def _signed(session: ChannelSession, number: int) -> bytes:
    body = _event(session, number)
    signature = hmac.new(session.webhook_secret.encode(), body, hashlib.sha512).hexdigest()
    headers = {
        "X-Webhook-Hmac": signature,
        "X-Webhook-Hmac-Algorithm": "sha512",
        "X-Webhook-Request-Id": f"req-{number:020}",
    }
    return load.request(f"/api/v1/webhooks/waha/{session.session_name}", body, headers)


def _check(ours: Load, bare: Load) -> str:
    if refused := ours.refused + bare.refused:
        raise WrongResult(f"a webhook was refused: {refused[0]!r}")
    kept = WebhookEvent.objects.count()
    if kept != ours.answered:
        raise WrongResult(f"{ours.answered} webhooks were answered with 200, {kept} are kept")
    return f"{kept} answered and kept, each body as it was signed"
