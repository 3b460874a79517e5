"""What a forked process becomes: the same entry points that production starts, in an interpreter that is warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chaos import skew
from chaos.journal import Journal


def become(role: str, given: Mapping[str, Any]) -> None:
    """Run as worker, dispatcher, beat or web; returns when that ends."""
    from django.conf import settings

    settings.FAULT_POINT = given.get("fault_point", "")
    _ROLES[role](given)


def _worker(given: Mapping[str, Any]) -> None:
    from broadcast_project.celery import app
    from channels_waha.adapter import WahaAdapter

    WahaAdapter.send = Journal(Path(given["journal"])).around(WahaAdapter.send)  # type: ignore[method-assign]
    if given.get("ahead"):
        skew.ahead(given["ahead"])
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    name = f"{given['name']}@chaos"
    app.worker_main(["worker", "-P", "threads", "-c", "6", "-Q", "send,inbound,default", "-n", name, *quiet])


def _dispatcher(_given: Mapping[str, Any]) -> None:
    from django.core.management import call_command

    call_command("run_dispatcher")


def _beat(_given: Mapping[str, Any]) -> None:
    from broadcast_project.celery import app

    app.start(["beat", "--pidfile=", "--max-interval=1"])


def _web(given: Mapping[str, Any]) -> None:
    from granian.constants import Interfaces
    from granian.server import Server

    server = Server(
        "broadcast_project.wsgi:application",
        address="127.0.0.1",
        port=given["port"],
        interface=Interfaces.WSGI,
        blocking_threads=4,
        websockets=False,
    )
    server.serve()


_ROLES: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "worker": _worker,
    "dispatcher": _dispatcher,
    "beat": _beat,
    "web": _web,
}
