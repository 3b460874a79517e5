"""What this room does when a message of its own is sent again."""

from __future__ import annotations

from datetime import datetime

from broadcasts import services
from broadcasts.refusals import Forbidden, InvalidTransition
from events.services import Actor
from messaging import decisions, streams
from messaging.models import Stream


class OwnStreams:
    """A broadcast goes on with a message that a person has sent again (messaging.decisions.Owner)."""

    def go_on(self, *, stream: Stream, actor: Actor, now: datetime) -> None:
        """Raises decisions.OwnerRefuses where its owner lost the right, and StreamEnded where it can't go on."""
        try:
            services.follow_retry(stream=stream, actor=actor, now=now)
        except Forbidden as refused:
            raise decisions.OwnerRefuses(refused.code, refused.detail) from refused
        except InvalidTransition as wrong:
            raise streams.StreamEnded(streams.StreamEnded.__doc__) from wrong
