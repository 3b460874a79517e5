"""Webhooks on their way: concurrent, retried, held in memory only.

No task stands behind a delivery, only callbacks: several follow each message, so their cost decides how much
one core can simulate.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from simulator import signing
from simulator.chance import Chance, Ids
from simulator.clock import Clock
from simulator.retries import RetryPolicy, retry_after
from simulator.wire import HttpClient, Reply

DEBUG_EVENTS = frozenset({"state.change", "engine.event"})
REDIRECTS = 5
REDIRECTED = (301, 302, 303, 307, 308)
KEEPING = (307, 308)


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a session's configuration."""

    url: str
    events: frozenset[str]
    key: str | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    custom_headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Hook":
        custom = config.get("customHeaders") or ()
        return cls(
            url=config["url"],
            events=frozenset(config.get("events") or ()),
            key=(config.get("hmac") or {}).get("key"),
            policy=RetryPolicy.from_config(config.get("retries")),
            custom_headers=tuple((header["name"], header["value"]) for header in custom),
        )

    def wants(self, event: str) -> bool:
        """`*` is all but the two debug events."""
        return event in self.events or ("*" in self.events and event not in DEBUG_EVENTS)


class Posting:
    """One event on its way to one hook: tried, retried, redirected, until it arrives or is given up."""

    __slots__ = (
        "_body",
        "_deliveries",
        "_headers",
        "_hook",
        "_is_dropped",
        "_timer",
        "_waiters",
        "arrived",
        "event",
        "session",
        "tries",
    )

    def __init__(
        self, deliveries: "Deliveries", hook: Hook, *, headers: dict[str, str], body: bytes, event: str, session: str
    ) -> None:
        self._deliveries = deliveries
        self._hook = hook
        self._headers = headers
        self._body = body
        self._is_dropped = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self.event = event
        self.session = session
        self.tries = 0
        self.arrived: bool | None = None

    def begin(self) -> None:
        """Send it, for the first time or again: the same bytes, under the same request id."""
        self.tries += 1
        self._deliveries.client.submit("POST", self._hook.url, self._headers, self._body, self._answered)

    def begin_later(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.begin)

    async def wait(self) -> None:
        """Until it has arrived or is given up."""
        if self.arrived is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def drop(self) -> None:
        """As when the server ends: nobody tries again."""
        self._is_dropped = True
        if self._timer is not None:
            self._timer.cancel()

    def _answered(self, reply: Reply | None, error: OSError | None) -> None:
        if reply is None:
            self._failed(type(error).__name__, asked=0.0)
        elif 200 <= reply.status < 300:
            self._end(str(reply.status), arrived=True)
        elif reply.status in REDIRECTED and "location" in reply.headers:
            self._follow(reply, self._hook.url, "POST", REDIRECTS)
        else:
            self._failed(str(reply.status), asked=self._asked(reply))

    def _follow(self, reply: Reply, url: str, method: str, left: int) -> None:
        """307 and 308 keep the POST, the others become a bare GET."""
        url = urljoin(url, reply.headers["location"])
        headers, body = self._headers, self._body
        if reply.status not in KEEPING or method == "GET":
            method, body = "GET", b""
            headers = {name: value for name, value in headers.items() if name != "Content-Type"}

        def answered(reply: Reply | None, error: OSError | None) -> None:
            if reply is not None and left > 1 and reply.status in REDIRECTED and "location" in reply.headers:
                self._follow(reply, url, method, left - 1)
            elif reply is not None and 200 <= reply.status < 300:
                self._end(str(reply.status), arrived=True)
            elif reply is not None:
                self._failed(str(reply.status), asked=self._asked(reply))
            else:
                self._failed(type(error).__name__, asked=0.0)

        self._deliveries.client.submit(method, url, headers, body, answered)

    def _asked(self, reply: Reply) -> float:
        return retry_after(reply.headers.get("retry-after"), now=self._deliveries.clock.now())

    def _failed(self, outcome: str, *, asked: float) -> None:
        deliveries, policy = self._deliveries, self._hook.policy
        if self._is_dropped:
            return
        deliveries.counts["retried"] += 1
        if self.tries > policy.attempts:
            self._end(outcome, arrived=False)
            return
        wait = policy.wait(self.tries, jitter=deliveries.chance.jitter())
        self._timer = deliveries.clock.later(max(wait, asked), self.begin)

    def _end(self, outcome: str, *, arrived: bool) -> None:
        self.arrived = arrived
        self._deliveries.ended(self, self._hook.url, outcome)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class Deliveries:
    """Posts events; retries go on after the session is stopped or deleted, as in WAHA."""

    def __init__(self, *, clock: Clock, ids: Ids, chance: Chance, version: str) -> None:
        self.clock = clock
        self.chance = chance
        self.client = HttpClient()
        self.counts: Counter[str] = Counter()
        self.recent: deque[dict[str, Any]] = deque(maxlen=1000)
        self._ids = ids
        self._version = version
        self._postings: set[Posting] = set()

    @property
    def pending(self) -> int:
        return len(self._postings)

    def post(
        self, hook: Hook, *, event: str, session: str, body: bytes, timestamp_ms: int, after: float = 0.0
    ) -> Posting:
        """Begin one delivery, now or `after` real seconds."""
        headers = signing.headers(
            version=self._version,
            request_id=self._ids.request(timestamp_ms),
            timestamp_ms=timestamp_ms,
            key=hook.key,
            body=body,
        )
        if hook.custom_headers:
            headers.update(hook.custom_headers)
        posting = Posting(self, hook, headers=headers, body=body, event=event, session=session)
        self._postings.add(posting)
        if after:
            posting.begin_later(after)
        else:
            posting.begin()
        return posting

    def ended(self, posting: Posting, url: str, outcome: str) -> None:
        """Called by a posting when it has arrived or is given up."""
        self._postings.discard(posting)
        self.counts["delivered" if posting.arrived else "lost"] += 1
        self.recent.append(
            {
                "event": posting.event,
                "session": posting.session,
                "url": url,
                "tries": posting.tries,
                "outcome": outcome,
            }
        )

    def forget(self) -> None:
        """All that is on its way is lost: it was in memory only."""
        for posting in self._postings:
            posting.drop()
        self._postings.clear()

    def close(self) -> None:
        self.forget()
        self.client.close()
