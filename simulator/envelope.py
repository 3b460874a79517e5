"""The envelope around each event's payload."""

import json
from typing import Any

from simulator.engines import Me


def environment(*, version: str, engine: str, tier: str) -> dict[str, Any]:
    """As in each envelope, in `GET /api/server/version` and in the body of a 500."""
    return {
        "version": version,
        "engine": engine,
        "tier": tier,
        "browser": None,
        "platform": "linux/x64",
        "worker": {"id": None},
    }


# As JSON.stringify writes it: no blanks, letters as they are. One encoder, since building it costs.
dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


class Envelope:
    """Builds envelopes of one session; what does not change is written once."""

    def __init__(self, *, session: str, metadata: dict[str, Any] | None, environment: dict[str, Any]) -> None:
        self._session = dumps(session)
        self._metadata = "" if metadata is None else f',"metadata":{dumps(metadata)}'
        self._ending = f',"engine":{dumps(environment["engine"])},"environment":{dumps(environment)}}}'
        self._me_shown: Me | None = None
        self._me = "null"

    def build(self, *, event_id: str, timestamp_ms: int, event: str, me: Me | None, payload: Any) -> bytes:
        """The bytes that are signed and sent, on each retry the same."""
        if me != self._me_shown:
            self._me_shown = None if me is None else me.copy()
            self._me = dumps(me)
        text = (
            f'{{"id":"{event_id}","timestamp":{timestamp_ms},"event":"{event}","session":{self._session}'
            f'{self._metadata},"me":{self._me},"payload":{dumps(payload)}{self._ending}'
        )
        return text.encode("utf-8", "surrogatepass")
