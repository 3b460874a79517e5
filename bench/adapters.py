"""Numbers to measure with: they share one session of the simulator, so that none is to be paired for each."""

from __future__ import annotations

import secrets
from typing import ClassVar
from uuid import UUID

from django.conf import settings

from channels_waha import client, refusals, values
from channels_waha.adapter import WahaAdapter
from messaging.adapters import Outgoing

# Above what any machine of these benchmarks does: the machinery is what is measured.
RATE = 4000.0
SESSION = "pooled"


class PooledNumber(WahaAdapter):
    """Takes as many at once as one will, as official numbers do; by the client of the product."""

    carries_ban_risk: ClassVar[bool] = False

    def rate_of(self, channel_id: UUID) -> float | None:  # noqa: ARG002 - the port's shape
        return RATE

    def new_provider_id(self, channel_id: UUID) -> str | None:  # noqa: ARG002 - the port's shape
        return f"3EB0{secrets.token_hex(9).upper()}"

    def is_slow_to_prepare(self, outgoing: Outgoing) -> bool:  # noqa: ARG002 - the port's shape
        return False

    def send(self, outgoing: Outgoing, *, start_by: float, deadline: float) -> str | None:
        body = {
            "session": SESSION,
            "chatId": f"{outgoing.address}@c.us",
            "text": outgoing.text,
            "id": outgoing.provider_id,
        }
        server = client.Server(settings.WAHA_BASE_URL, settings.WAHA_API_KEY)
        answer = client.call(server, "POST", "/api/sendText", body=body, start_by=start_by, deadline=deadline)
        return values.answered_id(refusals.check(answer).object())


class SerialNumber(PooledNumber):
    """The same, one after the other."""

    carries_ban_risk: ClassVar[bool] = True

    def rate_of(self, channel_id: UUID) -> float | None:  # noqa: ARG002 - the port's shape
        return None
