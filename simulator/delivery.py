"""Webhooks on their way: concurrent, retried, held in memory only."""

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


class Deliveries:
    """Posts events; retries go on after the session is stopped or deleted, as in WAHA."""

    def __init__(self, *, clock: Clock, ids: Ids, chance: Chance, version: str) -> None:
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._version = version
        self._client = HttpClient()
        self._tasks: set[asyncio.Task[bool]] = set()
        self.counts: Counter[str] = Counter()
        self.recent: deque[dict[str, Any]] = deque(maxlen=1000)

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def post(self, hook: Hook, *, event: str, session: str, body: bytes, timestamp_ms: int) -> asyncio.Task[bool]:
        """Begin one delivery; the task ends with whether it arrived."""
        headers = signing.headers(
            version=self._version,
            request_id=self._ids.request(timestamp_ms),
            timestamp_ms=timestamp_ms,
            key=hook.key,
            body=body,
        )
        headers.update(hook.custom_headers)
        task = asyncio.get_running_loop().create_task(self._deliver(hook, headers, body, event, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.close()

    async def _deliver(self, hook: Hook, headers: dict[str, str], body: bytes, event: str, session: str) -> bool:
        outcome = "none"
        tries = 0
        while True:
            tries += 1
            asked = 0.0
            try:
                reply = await self._once(hook.url, headers, body)
            except OSError as error:
                outcome = type(error).__name__
            else:
                outcome = str(reply.status)
                if 200 <= reply.status < 300:
                    break
                asked = retry_after(reply.headers.get("retry-after"), now=self._clock.now())
            self.counts["retried"] += 1
            if tries > hook.policy.attempts:
                break
            wait = hook.policy.wait(tries, jitter=self._chance.jitter())
            await self._clock.sleep(max(wait, asked))
        arrived = outcome.startswith("2")
        self.counts["delivered" if arrived else "lost"] += 1
        self.recent.append({"event": event, "session": session, "url": hook.url, "tries": tries, "outcome": outcome})
        return arrived

    async def _once(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One request with its redirects: 307 and 308 keep the POST, the others become a bare GET."""
        method = "POST"
        reply = await self._client.request(method, url, headers, body)
        for _ in range(REDIRECTS):
            location = reply.headers.get("location")
            if reply.status not in (301, 302, 303, 307, 308) or not location:
                break
            if reply.status not in (307, 308):
                method, body = "GET", b""
                headers = {name: value for name, value in headers.items() if name != "Content-Type"}
            url = urljoin(url, location)
            reply = await self._client.request(method, url, headers, body)
        return reply
