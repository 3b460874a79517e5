"""What is asked of WAHA about a session, one call after the other. Never inside a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.urls import reverse

from channels_waha import client, configuration, gateway, services
from channels_waha.client import Server
from channels_waha.gateway import Seen, ServerInfo
from channels_waha.models import ChannelSession
from messaging import db
from permissions import ids

Status = ChannelSession.Status
# Tells the advisory locks of sessions from those of other kinds.
_LOCK = 3


class SessionBusy(Exception):
    """Another call about this session is under way; WAHA takes one at a time."""


def connect(session: ChannelSession) -> ChannelSession:
    """Create or update the session at WAHA and have it run; the row as it is then.

    Repeatable, whatever state it is in: a session that works already is only configured. Raises ChannelError,
    and SessionBusy.
    """
    services.set_wanted(session, wanted=True)
    server = client.default_server()
    with _alone(session):
        info = gateway.server_info(server)
        services.set_server(session, version=info.version, engine=info.engine)
        _converge(server, session)
        return _follow(server, session)


def converge(session: ChannelSession, info: ServerInfo) -> ChannelSession:
    """The same for a session that should run and whose server has just been asked about itself."""
    server = client.default_server()
    with _alone(session):
        services.set_server(session, version=info.version, engine=info.engine)
        _converge(server, session)
        return _follow(server, session)


def stop(session: ChannelSession) -> ChannelSession:
    """Stop a session; it stays stopped until it is connected again. Its link to the phone is kept."""
    services.set_wanted(session, wanted=False)
    server = client.default_server()
    with _alone(session):
        gateway.stop(server, session.session_name)
        return _follow(server, session)


def relink(session: ChannelSession) -> ChannelSession:
    """Forget the phone's link and show a new QR code: the way back after the phone unlinked us."""
    server = client.default_server()
    with _alone(session):
        gateway.logout(server, session.session_name)
        _start(server, session, gateway.read(server, session.session_name))
        return _follow(server, session)


def refresh(session: ChannelSession) -> ChannelSession:
    """Ask WAHA for the session's state and follow it. Raises ChannelError."""
    return _follow(client.default_server(), session)


def qr_png(session: ChannelSession) -> bytes:
    """The QR code as a PNG. Ask only while the status is SCAN_QR_CODE. Raises ChannelError."""
    return gateway.qr_png(client.default_server(), session.session_name)


def qr_value(session: ChannelSession) -> str:
    """What the QR code says, under the same condition. A secret: whoever scans it reads the account."""
    return gateway.qr_value(client.default_server(), session.session_name)


def webhook_url(session: ChannelSession) -> str:
    """Where WAHA is to post this session's events."""
    return settings.WEBHOOK_BASE_URL + reverse("waha-webhook", args=[session.session_name])


def wanted_configuration(session: ChannelSession) -> dict[str, Any]:
    return configuration.wanted(
        webhook_url=webhook_url(session),
        secret=session.webhook_secret,
        metadata={"channel_id": ids.encode(ids.CHANNEL, session.channel_id)},
    )


def _converge(server: Server, session: ChannelSession) -> None:
    """Create, or read, merge, compare and put only where it differs; then start what does not run."""
    ours = wanted_configuration(session)
    if gateway.create(server, session.session_name, ours) is not None:
        return
    seen = gateway.read(server, session.session_name)
    if seen is not None:
        config = configuration.merged(seen.config, ours)
        if config != seen.config:
            seen = gateway.update(server, session.session_name, config)
    _start(server, session, seen)


def _start(server: Server, session: ChannelSession, seen: Seen | None) -> None:
    status = seen.status.upper() if seen is not None else Status.STOPPED
    if status == Status.STOPPED:
        gateway.start(server, session.session_name)
    elif status == Status.FAILED:
        # "start" is refused there: it counts as started.
        gateway.restart(server, session.session_name)


def _follow(server: Server, session: ChannelSession) -> ChannelSession:
    asked_at = db.database_now()
    seen = gateway.read(server, session.session_name)
    return services.write_truth(
        session_id=session.pk,
        status=seen.status if seen is not None else Status.STOPPED,
        me=seen.me if seen is not None else None,
        asked_at=asked_at,
        now=db.database_now(),
    )


@contextmanager
def _alone(session: ChannelSession) -> Iterator[None]:
    """One call at a time about a session: WAHA takes no two, and fails the second after 5 s."""
    with db.tried_lock(_LOCK, str(session.pk)) as ours:
        if not ours:
            raise SessionBusy(SessionBusy.__doc__)
        yield
