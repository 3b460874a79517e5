"""sync-sessions: what WAHA says is the truth, and what should run is run again."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from channels_waha import client, gateway, lifecycle, services
from channels_waha.gateway import Seen, ServerInfo
from channels_waha.models import ChannelSession
from messaging import cron, db
from messaging import services as messaging
from messaging.models import Channel, CronRun

log = logging.getLogger(__name__)

Status = ChannelSession.Status
NAME = "sync-sessions"
GATEWAY_FAILING = "gateway_failing"


@dataclass(slots=True)
class _Server:
    """What one server answered in this run; nothing where it could not be asked."""

    info: ServerInfo | None = None
    seen: dict[str, Seen] = field(default_factory=dict)
    asked_at: datetime = field(default_factory=db.database_now)

    def ask(self) -> int:
        """How many sessions it has. Raises ChannelError: unreachable is no status, and overwrites nothing."""
        server = client.default_server()
        info = gateway.server_info(server)
        self.asked_at = db.database_now()
        self.seen = gateway.all_sessions(server)
        self.info = info
        return len(self.seen)


def sync_sessions() -> CronRun | None:
    """Poll every session, each apart from the others; None where another run is at it."""
    names = (
        ChannelSession.unscoped.exclude(channel__state=Channel.State.ARCHIVED)
        .order_by("session_name")
        .values_list("pk", "session_name")
    )
    sessions = list(names)
    if not sessions:
        return cron.run(NAME)
    server = _Server()
    return cron.run(
        NAME,
        ("ask WAHA", server.ask),
        *((name, partial(_sync, session_id, server)) for session_id, name in sessions),
    )


def _sync(session_id: UUID, server: _Server) -> int:
    """Write the truth about one session, then start it again if it should run; 1 where it was looked at."""
    if server.info is None:
        return 0
    session = ChannelSession.unscoped.get(pk=session_id)
    seen = server.seen.get(session.session_name)
    services.set_server(session, version=server.info.version, engine=server.info.engine)
    session = services.write_truth(
        session_id=session_id,
        status=seen.status if seen is not None else Status.STOPPED,
        me=seen.me if seen is not None else None,
        asked_at=server.asked_at,
        now=db.database_now(),
    )
    if session.status == Status.WORKING:
        messaging.remove_hold(session.channel_id, GATEWAY_FAILING, now=db.database_now())
    elif session.status == Status.STOPPED and session.is_wanted:
        # STOPPED is on record by now. FAILED is left alone: only a person links a phone again.
        log.info("session %s is started again", session.session_name)
        lifecycle.converge(session, server.info)
    return 1
