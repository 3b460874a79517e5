"""The envelope around each event's payload."""

import json
from typing import Any

import orjson

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


# One encoder, since building it costs.
_slow_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def dumps(value: Any) -> bytes:
    """As JSON.stringify writes it: no blanks, letters as they are."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half an emoji, or a number beyond 64 bits: JavaScript writes both
        return _slow_dumps(value).encode("utf-8", "surrogatepass")


class Envelope:
    """Builds envelopes of one session; what does not change is written once."""

    def __init__(self, *, session: str, metadata: dict[str, Any] | None, environment: dict[str, Any]) -> None:
        self._session = dumps(session)
        self._metadata = b"" if metadata is None else b',"metadata":' + dumps(metadata)
        self._ending = b',"engine":%b,"environment":%b}' % (dumps(environment["engine"]), dumps(environment))
        self._me_shown: Me | None = None
        self._me = b"null"

    def build(self, *, event_id: str, timestamp_ms: int, event: str, me: Me | None, payload: Any) -> bytes:
        """The bytes that are signed and sent, on each retry the same."""
        if me != self._me_shown:
            self._me_shown = None if me is None else me.copy()
            self._me = dumps(me)
        return b'{"id":"%b","timestamp":%d,"event":"%b","session":%b%b,"me":%b,"payload":%b%b' % (
            event_id.encode(),
            timestamp_ms,
            event.encode(),
            self._session,
            self._metadata,
            self._me,
            dumps(payload),
            self._ending,
        )
