"""The simulated server: its sessions, and how calls wait for them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from simulator import refusals
from simulator.book import Book
from simulator.chance import Chance, Ids
from simulator.clock import Clock, Signal
from simulator.delivery import Deliveries
from simulator.directory import Directory
from simulator.engines import ENGINES
from simulator.envelope import environment
from simulator.faults import FaultBoard
from simulator.fetching import Fetcher
from simulator.files import FileStore
from simulator.options import IDS_TAKEN_SINCE, RESTRICTIONS_TOLD_SINCE, Options
from simulator.session import Session
from simulator.states import Status

RUNNING_WAIT_SECONDS = 5.0
STATUS_WAIT_SECONDS = 10.0
LOCK_WAIT_SECONDS = 5.0
STOP_SECONDS = 3.0
UNPAIR_SECONDS = 1.0


class World:
    """Everything one simulator process holds."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clock = Clock(options.time_scale)
        self.signal = Signal()
        self.chance = Chance(options.seed)
        self.ids = Ids()
        self.book = Book(options.book_file)
        self.faults = FaultBoard(self.chance)
        self.directory = Directory()
        self.files = FileStore(base_url=options.base_url, lifetime=options.files_lifetime)
        self.fetcher = Fetcher()
        self.deliveries = Deliveries(clock=self.clock, ids=self.ids, chance=self.chance, version=options.version)
        self.sessions: dict[str, Session] = {}
        self.started_ms = self.clock.now_ms()
        # A fresh old Core holds `default`, stopped, though no list shows it.
        self._has_phantom = options.is_restricted
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.knows_ids = options.version_numbers >= IDS_TAKEN_SINCE
        self.tells_restrictions = options.version_numbers >= RESTRICTIONS_TOLD_SINCE

    def environment(self) -> dict[str, Any]:
        options = self.options
        return environment(version=options.version, engine=options.engine, tier=options.tier)

    def takes_id(self, session: Session) -> bool:
        """Whether a caller's message id is used; else it is ignored without a word."""
        return self.knows_ids and session.engine.takes_ids

    # -- finding a session ------------------------------------------------------------------------

    def require(self, name: str) -> Session:
        """Raises the 404 of the session routes."""
        session = self.sessions.get(name)
        if session is None:
            raise refusals.not_found()
        return session

    def require_running(self, name: str) -> Session:
        """Raises the other 404, which names the way to start it."""
        session = self.sessions.get(name)
        if session is None or not session.lifecycle.is_running:
            raise refusals.session_not_running(name)
        return session

    async def ready(self, name: str, expected: Sequence[Status] = (Status.WORKING,)) -> Session:
        """The session in an expected status, waited for as WAHA does; else its 422."""
        session = self.sessions.get(name)
        if session is not None and session.status in expected:
            return session
        self.refuse_foreign(name)
        session = await self._running(name, expected)
        deadline = self._deadline(STATUS_WAIT_SECONDS)
        while session.status not in expected:
            if not await self.signal.wait(deadline - self.clock.monotonic()):
                raise refusals.wrong_status(name, session.status, expected)
        return session

    def refuse_foreign(self, name: str) -> None:
        """Old Core knows the session `default` only."""
        if self.options.is_restricted and name != "default":
            raise refusals.core_session_only(name)

    async def _running(self, name: str, expected: Sequence[Status]) -> Session:
        deadline = self._deadline(RUNNING_WAIT_SECONDS)
        while True:
            session = self.sessions.get(name)
            if session is not None and session.lifecycle.is_running:
                return session
            if not await self.signal.wait(deadline - self.clock.monotonic()):
                break
        if session is None:
            raise refusals.session_missing(name)
        raise refusals.wrong_status(name, session.status, expected)

    def _deadline(self, seconds: float) -> float:
        return self.clock.monotonic() + self.clock.scaled(seconds)

    # -- what the session routes do ---------------------------------------------------------------

    async def create(self, *, name: str | None, config: Any, start: bool) -> Session:
        name = name or self.ids.session_name()
        async with self._locked(name):
            if name in self.sessions or self._has_phantom:
                raise refusals.unprocessable(f"Session '{name}' already exists. Use PUT to update it.")
            session = self.sessions[name] = Session(self, name, config)
            if start:
                session.start()
            return session

    async def update(self, name: str, config: Any) -> Session:
        """Replaces the configuration wholly; what runs is restarted."""
        async with self._locked(name):
            session = self.require(name)
            session.config = config
            if session.lifecycle.is_running:
                await self._stop(session)
                session.start()
            return session

    async def start(self, name: str) -> Session:
        async with self._locked(name):
            if self._has_phantom:
                self._has_phantom = False
                self.sessions[name] = Session(self, name, None)
            session = self.require(name)
            if session.lifecycle.is_running:
                raise refusals.unprocessable(f"Session '{name}' is already started.")
            session.start()
            return session

    async def stop(self, name: str) -> Session | None:
        """None for an unknown one: WAHA answers 201 with nothing."""
        async with self._locked(name):
            session = self.sessions.get(name)
            if session is not None and session.lifecycle.is_running:
                await self._stop(session)
            return session

    async def restart(self, name: str) -> Session:
        async with self._locked(name):
            session = self.require(name)
            if session.lifecycle.is_running:
                await self._stop(session)
            session.start()
            return session

    async def logout(self, name: str) -> Session:
        """Unpairs; what ran starts again and shows a new QR."""
        async with self._locked(name):
            session = self.require(name)
            was_running = session.lifecycle.is_running
            if was_running:
                await self._stop(session)
                await self.clock.sleep(UNPAIR_SECONDS)
            session.forget_account()
            if was_running:
                session.start()
            return session

    async def delete(self, name: str) -> None:
        async with self._locked(name):
            self._has_phantom = False
            session = self.sessions.get(name)
            if session is None:
                return
            if session.lifecycle.is_running:
                await self._stop(session)
                await self.clock.sleep(UNPAIR_SECONDS)
            session.forget_account()
            self.sessions.pop(name, None)
            self.signal.notify()

    def set_engine(self, name: str, engine: str) -> Session:
        """Control only: one session poses as on another engine; seen at its next start."""
        session = self.require(name)
        session.engine = ENGINES[engine]
        return session

    def crash(self) -> None:
        """As when the server's process ends and starts: webhooks on their way are lost, what ran starts again."""
        self.deliveries.forget()
        self.started_ms = self.clock.now_ms()
        running = [session for session in self.sessions.values() if session.lifecycle.is_running]
        for session in running:
            session.crash()
            session.start()
        self.signal.notify()

    def reset(self) -> None:
        """As just set up: no session, no fault, an empty book."""
        self.deliveries.forget()
        for session in self.sessions.values():
            session.crash()
        self.sessions.clear()
        self.faults.remove()
        self.book.clear()
        self.directory = Directory()
        self.files.clear()
        self._has_phantom = self.options.is_restricted
        self.signal.notify()

    async def close(self) -> None:
        self.deliveries.close()
        await self.fetcher.close()
        self.book.close()

    async def _stop(self, session: Session) -> None:
        session.stop()
        await self.clock.sleep(STOP_SECONDS)

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """One lifecycle call at a time per session; who waits over 5 s gets a 500."""
        lock = self._locks[name]
        try:
            await asyncio.wait_for(lock.acquire(), self.clock.scaled(LOCK_WAIT_SECONDS))
        except TimeoutError:
            raise refusals.EngineError(f"async-lock timed out in queue {name}") from None
        try:
            yield
        finally:
            lock.release()
