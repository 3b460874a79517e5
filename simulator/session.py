"""One WhatsApp session: its life, its account, and the events it emits."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simulator import connection
from simulator.delivery import Hook, Posting
from simulator.engines import ENGINES, Engine, Me
from simulator.envelope import Envelope, environment
from simulator.groups import Group
from simulator.messages import Message, MessageStore
from simulator.people import AddressBook
from simulator.restriction import NO_CAPPING, Restriction
from simulator.states import (
    CONNECT_SECONDS,
    KNOWN_NAME_LAG_SECONDS,
    OFFLINE_TRIES,
    QR_SECONDS,
    RECONNECT_SECONDS,
    WORKING_LAG_SECONDS,
    IllegalMoveError,
    Lifecycle,
    Status,
)

if TYPE_CHECKING:
    from simulator.world import World

ABSENT: Any = object()
READ = 3
UNREAD_KEPT = 1000
STATUS = "status@broadcast"
# A switch of `config.ignore` → how the chats end that it is about; "status" stands for `status@broadcast`.
IGNORABLE = {"status": "status", "groups": "@g.us", "channels": "@newsletter", "broadcast": "@broadcast"}


class ScanError(Exception):
    """There is no QR to scan now, or it is another one."""


class Session:
    """Held by the world under its name. `config` is ABSENT when it never had any."""

    def __init__(self, world: "World", name: str, config: Any = ABSENT) -> None:
        self._world = world
        self.name = name
        self.config = config
        self.engine: Engine = ENGINES[world.options.engine]
        self.lifecycle = Lifecycle()
        self.messages = MessageStore()
        self.people = AddressBook()
        self.groups: dict[str, Group] = {}
        self.heard_from: set[str] = set()
        self._unread: dict[str, deque[Message]] = {}
        self.restriction: Restriction | None = None
        self.capping = dict(NO_CAPPING)
        self.me: Me | None = None
        self.phone: str | None = None
        self.push_name = ""
        self.is_revoked = False
        self.activity_ms: int | None = None
        self.qr: str | None = None
        self._qr_count = 0
        self._offline_tries = 0
        self._step: asyncio.TimerHandle | None = None
        self._late_status: asyncio.TimerHandle | None = None
        self._deferred: list[Callable[[], None]] = []
        self._ignored: tuple[str, ...] = ()
        self._hooks: tuple[Hook, ...] = ()
        self._hooks_of: dict[str, tuple[Hook, ...]] = {}
        self._envelope = self._new_envelope()

    @property
    def status(self) -> Status:
        return self.lifecycle.status

    @property
    def is_working(self) -> bool:
        return self.lifecycle.status is Status.WORKING

    @property
    def store_enabled(self) -> bool:
        """NOWEB keeps nothing unless told to; the other engines always do."""
        if self.engine.name != "NOWEB":
            return True
        config = self.config if isinstance(self.config, dict) else {}
        noweb = config.get("noweb") or {}
        return bool((noweb.get("store") or {}).get("enabled"))

    @property
    def tells_group_acks(self) -> bool:
        """WEBJS tells of them only where `webjs.tagsEventsOn` is set."""
        if self.engine.name != "WEBJS":
            return True
        config = self.config if isinstance(self.config, dict) else {}
        return bool((config.get("webjs") or {}).get("tagsEventsOn"))

    def ignores(self, chat_id: str) -> bool:
        """Whether its configuration wants no events of such a chat."""
        return bool(self._ignored) and ("status" if chat_id == STATUS else chat_id).endswith(self._ignored)

    def has_heard_from(self, chat_id: str) -> bool:
        return not self.heard_from.isdisjoint(self.people.both(chat_id))

    def heard(self, message: Message) -> None:
        """Someone wrote; it is unread until `read`."""
        self.heard_from.add(message.chat_id)
        self._unread.setdefault(message.chat_id, deque(maxlen=UNREAD_KEPT)).append(message)

    def read(self, chat_id: str) -> list[Message]:
        """Read all of a chat, as its writer sees by two blue ticks; returns what was unread."""
        found = [message for each in self.people.both(chat_id) for message in self._unread.pop(each, ())]
        for message in found:
            message.ack = READ
        return found

    # -- its life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """From STOPPED; webhooks are read from the configuration now and not again."""
        config = self.config if isinstance(self.config, dict) else {}
        self._hooks = tuple(Hook.from_config(entry) for entry in config.get("webhooks") or ())
        self._hooks_of.clear()
        ignored = config.get("ignore") or {}
        self._ignored = tuple(ending for name, ending in IGNORABLE.items() if ignored.get(name))
        self._envelope = self._new_envelope()
        self.me = None
        self.activity_ms = None
        self._move(Status.STARTING)
        self._tell_engine(connection.connecting)
        self._after(CONNECT_SECONDS, self._connected)

    def stop(self) -> None:
        self._cancel_step()
        self.qr = None
        self._tell_state(connection.closed(connection.LOGOUT, at=self._world.clock.now()))
        self._move(Status.STOPPED)
        self.me = None

    def forget_account(self) -> None:
        """What a logout erases."""
        self.phone = None
        self.push_name = ""
        self.is_revoked = False
        self.messages.clear()
        self.people.clear()
        self.groups.clear()
        self.heard_from.clear()
        self._unread.clear()
        self.restriction = None
        self.capping = dict(NO_CAPPING)
        self._deferred.clear()

    def scan(self, *, phone: str, push_name: str, qr: str | None = None) -> None:
        """A phone scans the QR shown now; raises ScanError when that is not possible."""
        if self.status is not Status.SCAN_QR_CODE or self.qr is None:
            raise ScanError(f"the session is {self.status}")
        if qr is not None and qr != self.qr:
            raise ScanError("this QR is no longer the current one")
        self.qr = None
        self.phone = phone
        self.push_name = push_name
        self.is_revoked = False
        self.me = {"id": f"{phone}@c.us", "lid": self._world.directory.lid_of(phone)}
        self._tell_state({"isNewLogin": True})
        self._after(RECONNECT_SECONDS, self._reconnect)

    def request_code(self, phone: str) -> str:
        """`me` is set though nothing is linked: so it was measured."""
        self.me = {"id": f"{phone}@c.us", "pushName": "~", "lid": ""}
        return self._world.ids.pairing_code()

    def unlink(self, *, revoke: bool = True) -> None:
        """The phone's owner removes the linked device; a mere restart then fails again if `revoke`."""
        self._cancel_step()
        self.is_revoked = revoke
        self._tell_state(connection.closed(connection.REMOVED, at=self._world.clock.now()))
        self._move(Status.FAILED)

    def crash(self) -> None:
        """The server ends without a word: no event, and what was under way is lost."""
        self._cancel_step()
        if self._late_status is not None:
            self._late_status.cancel()
            self._late_status = None
        self.qr = None
        self.me = None
        self._deferred.clear()
        self.lifecycle = Lifecycle()

    def drop(self, *, stay: bool = False) -> None:
        """The socket is lost. Routine: back in seconds; with `stay`, not before `restore`."""
        if not self.lifecycle.is_running:
            raise IllegalMoveError(self.status, Status.STARTING)
        self._tell_state(connection.closed(connection.LOST, at=self._world.clock.now()))
        self._move(Status.STARTING)
        self._offline_tries = 1
        self._after(RECONNECT_SECONDS, self._try_offline if stay else self._reconnect_now)

    def restore(self) -> None:
        """The network is back."""
        if self.status is Status.STARTING:
            self._reconnect_now()

    def _connected(self) -> None:
        if self.is_revoked:
            self._move(Status.FAILED)
        elif self.phone is None:
            self._qr_count = 0
            self._show_qr()
        else:
            self.me = {"id": f"{self.phone}@c.us", "lid": self._world.directory.lid_of(self.phone)}
            self._tell_state({"connection": "open"})
            self._move(Status.WORKING)
            self._tell_state({"isOnline": True, "receivedPendingNotifications": True})
            self._run_deferred()

    def _show_qr(self) -> None:
        if self._qr_count == len(QR_SECONDS):
            self.qr = None
            self._move(Status.FAILED)
            return
        self.qr = self._world.ids.qr()
        self._tell_state({"qr": self.qr})
        self._move(Status.SCAN_QR_CODE)
        self._after(QR_SECONDS[self._qr_count], self._show_qr)
        self._qr_count += 1

    def _reconnect(self) -> None:
        self._move(Status.STARTING)
        self._reconnect_now()

    def _reconnect_now(self) -> None:
        self._after(CONNECT_SECONDS, self._connected)

    def _try_offline(self) -> None:
        self._offline_tries += 1
        if self._offline_tries > OFFLINE_TRIES:
            self._move(Status.FAILED)
            return
        self._move(Status.STARTING)
        self._after(RECONNECT_SECONDS, self._try_offline)

    def _move(self, status: Status) -> None:
        self.lifecycle.move(status, at_ms=self._world.clock.now_ms())
        self._world.signal.notify()
        if self._late_status is not None:
            self._late_status.cancel()
            self._late_status = None
        if status is Status.WORKING:
            is_known = any(past is Status.WORKING for past, _ in self.lifecycle.history[:-1])
            lag = KNOWN_NAME_LAG_SECONDS if is_known else WORKING_LAG_SECONDS
            self._late_status = self._world.clock.later(lag, self._announce_working)
        else:
            self._announce()

    def _announce_working(self) -> None:
        if self.me is not None:
            self.me = {"id": self.me["id"], "pushName": self.push_name, "lid": self.me["lid"]}
        self._announce()

    def _announce(self) -> None:
        self.emit("session.status", self.lifecycle.as_payload(self.name))

    def _tell_state(self, update: dict[str, Any]) -> None:
        """What Baileys says of its connection; the other engines have words of their own."""
        if self.engine.name == "NOWEB":
            self.emit("state.change", update)

    def _tell_engine(self, update: Callable[..., dict[str, Any]]) -> None:
        if self.engine.name == "NOWEB":
            now_ms = self._world.clock.now_ms()
            self.emit("engine.event", update(event_id=self._world.ids.event(now_ms), at_ms=now_ms))

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        self._cancel_step()
        self._step = self._world.clock.later(seconds, call)

    def _cancel_step(self) -> None:
        if self._step is not None:
            self._step.cancel()
            self._step = None

    # -- what it tells ----------------------------------------------------------------------------

    def when_working(self, call: Callable[[], None]) -> None:
        """Now, or when it is connected again: what happened meanwhile comes late."""
        if self.is_working:
            call()
        else:
            self._deferred.append(call)

    def emit(self, event: str, payload: Any, *, event_id: str | None = None) -> list[Posting]:
        """Post an event to the hooks that want it; returns the deliveries begun."""
        hooks = self._hooks_for(event)
        if not hooks:
            return []
        world = self._world
        now_ms = world.clock.now_ms()
        body = self._envelope.build(
            event_id=event_id or world.ids.event(now_ms),
            timestamp_ms=now_ms,
            event=event,
            me=self.me,
            payload=payload,
        )
        if not world.faults.rules:
            return [
                world.deliveries.post(hook, event=event, session=self.name, body=body, timestamp_ms=now_ms)
                for hook in hooks
            ]
        return self._post_troubled(hooks, event, payload, body, now_ms)

    def post(self, event: str, body: bytes) -> list[Posting]:
        """Post these very bytes, signed, to the hooks that want such an event."""
        now_ms = self._world.clock.now_ms()
        deliveries = self._world.deliveries
        return [
            deliveries.post(hook, event=event, session=self.name, body=body, timestamp_ms=now_ms)
            for hook in self._hooks_for(event)
        ]

    def _post_troubled(
        self, hooks: tuple[Hook, ...], event: str, payload: Any, body: bytes, now_ms: int
    ) -> list[Posting]:
        """Under faults: more than once, under a fresh envelope id each, late, or never."""
        world = self._world
        trouble = world.faults.webhook_trouble(session=self.name, event=event)
        postings = []
        for copy in range(trouble.copies):
            if copy and trouble.is_fresh:
                body = self._envelope.build(
                    event_id=world.ids.event(now_ms), timestamp_ms=now_ms, event=event, me=self.me, payload=payload
                )
            postings += [
                world.deliveries.post(
                    hook, event=event, session=self.name, body=body, timestamp_ms=now_ms, after=trouble.seconds
                )
                for hook in hooks
            ]
        return postings

    def is_heard(self, event: str) -> bool:
        """Whether any hook wants it; else its payload need not be built."""
        return bool(self._hooks_for(event))

    def _hooks_for(self, event: str) -> tuple[Hook, ...]:
        hooks = self._hooks_of.get(event)
        if hooks is None:
            hooks = self._hooks_of[event] = tuple(hook for hook in self._hooks if hook.wants(event))
        return hooks

    def describe(self, *, with_engine: bool = True) -> dict[str, Any]:
        """The SessionDTO of WAHA; the list leaves the engine out."""
        found: dict[str, Any] = {"name": self.name, "status": self.status.value}
        if self.config is not ABSENT:
            found["config"] = self.config
        is_running = self.lifecycle.is_running
        is_silent = is_running and self.activity_ms is None
        found |= {
            "me": self.me,
            "presence": None,
            "timestamps": {} if is_silent else {"activity": self.activity_ms if is_running else None},
        }
        if with_engine:
            found["engine"] = {"engine": self.engine.name} if is_running else self._engine_stopped()
        return found

    def _engine_stopped(self) -> dict[str, Any]:
        """Old Core and the manager of several sessions differ here."""
        return {} if self._world.options.is_restricted else {"engine": None}

    def _new_envelope(self) -> Envelope:
        config = self.config if isinstance(self.config, dict) else {}
        options = self._world.options
        return Envelope(
            session=self.name,
            metadata=config.get("metadata"),
            environment=environment(version=options.version, engine=self.engine.name, tier=options.tier),
        )

    def _run_deferred(self) -> None:
        waiting, self._deferred = self._deferred, []
        for call in waiting:
            call()
