"""Starts the simulator as a process of its own, and talks to its control API.

with SimulatorProcess(time_scale=0.05) as simulator:
    simulator.control.pair("acme", phone="5511999990001")
"""

import base64
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import requests

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 20.0
END_SECONDS = 3.0
CALL_SECONDS = 30.0

Found = TypeVar("Found")


class SimulatorError(AssertionError):
    """The control API refused, or what was awaited did not come."""


class SimulatorControl:
    """The control API. `base_url` without a slash at the end; a refused call raises SimulatorError."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._http = requests.Session()
        self._http.trust_env = False

    def close(self) -> None:
        self._http.close()

    # -- what happened --

    def state(self) -> dict[str, Any]:
        """Sessions (with `qr`, `phone`), webhooks (`pending`, `delivered`, `lost`, `retried`), faults."""
        return dict(self._call("GET", "state"))

    def session(self, name: str) -> dict[str, Any]:
        for found in self.state()["sessions"]:
            if found["name"] == name:
                return dict(found)
        raise SimulatorError(f"no session {name}")

    def book(
        self,
        *,
        session: str | None = None,
        chat_id: str | None = None,
        since: float | None = None,
        source: str = "api",
    ) -> list[dict[str, Any]]:
        """What phones got, in order of `acted_at`; `source` is api, app, typing or all. See simulator/book.py."""
        query = {"session": session, "chat_id": chat_id, "since": since, "source": source}
        given = {name: str(value) for name, value in query.items() if value is not None}
        return list(self._call("GET", "book", params=given))

    def clear_book(self) -> int:
        return int(self._call("DELETE", "book")["removed"])

    # -- sessions --

    def scan(
        self,
        session: str,
        *,
        phone: str,
        push_name: str = "Simulator",
        qr: str | None = None,
        wait: float = 20.0,
    ) -> dict[str, Any]:
        """Scan the QR of a session, once one is shown."""
        self.wait_for_status(session, "SCAN_QR_CODE", seconds=wait)
        body: dict[str, Any] = {"phone": phone, "push_name": push_name}
        if qr is not None:
            body["qr"] = qr
        return dict(self._call("POST", f"sessions/{session}/scan", body))

    def pair(self, session: str, *, phone: str, push_name: str = "Simulator", wait: float = 20.0) -> None:
        """Scan, and wait until it is WORKING."""
        self.scan(session, phone=phone, push_name=push_name, wait=wait)
        self.wait_for_status(session, "WORKING", seconds=wait)

    def unlink(self, session: str, *, revoke: bool = True) -> None:
        """FAILED, as when the owner removes the linked device."""
        self._call("POST", f"sessions/{session}/unlink", {"revoke": revoke})

    def drop(self, session: str, *, stay: bool = False) -> None:
        """The socket is lost: STARTING, back by itself unless `stay`."""
        self._call("POST", f"sessions/{session}/drop", {"stay": stay})

    def restore(self, session: str) -> None:
        self._call("POST", f"sessions/{session}/restore")

    def restrict(self, session: str, **settings: Any) -> None:
        """Strangers can be written to no more. Settings: seconds, enforcement, replies_pass, how."""
        self._call("POST", f"sessions/{session}/restrict", settings)

    def lift_restriction(self, session: str) -> None:
        self._call("DELETE", f"sessions/{session}/restrict")

    def set_capping(self, session: str, **fields: Any) -> None:
        self._call("PUT", f"sessions/{session}/capping", fields)

    def save_contact(self, session: str, phone: str, **fields: Any) -> None:
        """Into the address book: name, push_name, lid (True draws it)."""
        self._call("PUT", f"sessions/{session}/contacts/{phone}", fields)

    def learn_lid(self, session: str, phone: str) -> str:
        """From now on the account knows whose hidden id this is; returns it."""
        return str(self._call("POST", f"sessions/{session}/lids", {"phone": phone})["lid"])

    def group(self, session: str, group_id: str, *, subject: str, members: list[Any], **more: Any) -> None:
        """The session finds itself in a group. `more`: description, announce, admin."""
        self._call("PUT", f"sessions/{session}/groups/{group_id}", {"subject": subject, "members": members, **more})

    def group_members(self, session: str, group_id: str, **changes: list[Any]) -> None:
        """`add`, `remove`, `promote`, `demote`."""
        self._call("POST", f"sessions/{session}/groups/{group_id}/members", changes)

    def leave_group(self, session: str, group_id: str) -> None:
        """The session is thrown out."""
        self._call("DELETE", f"sessions/{session}/groups/{group_id}")

    def restart(self) -> int:
        """As a crash and a start of WAHA; returns how many webhooks are lost."""
        return int(self._call("POST", "restart")["lost_webhooks"])

    def reset(self) -> None:
        """As a server just set up."""
        self._call("POST", "reset")

    def set_engine(self, session: str, engine: str) -> None:
        self._call("POST", f"sessions/{session}/engine", {"engine": engine})

    # -- faults, numbers, messages --

    def fault(self, kind: str, **settings: Any) -> int:
        """Set a fault; returns its id. Kinds and settings: simulator/README.md."""
        return int(self._call("POST", "faults", {"kind": kind, **settings})["id"])

    def faults(self) -> list[dict[str, Any]]:
        """The faults in force, with `hits` and `left`."""
        return list(self._call("GET", "faults"))

    def clear_faults(self, fault_id: int | None = None) -> int:
        path = "faults" if fault_id is None else f"faults/{fault_id}"
        return int(self._call("DELETE", path)["removed"])

    def number(self, phone: str, *, exists: bool = True, chat_id: str | None = None, **more: Any) -> None:
        """Whether a phone is on WhatsApp, and under which chat id. `more`: lid, picture, about."""
        self._call("PUT", f"numbers/{phone}", {"exists": exists, "chat_id": chat_id, **more})

    def inbound(self, session: str, *, sender: str, text: str | None, **more: Any) -> str:
        """Someone writes to the session; returns the full id. `more`: type and its fields, id, push_name, lid,
        hidden, twice, reply_to, chat_id, timestamp; see simulator/README.md.
        """
        body = {"session": session, "from": sender, "text": text, **more}
        return str(self._call("POST", "inbound", body)["id"])

    def ack(self, session: str, message_id: str, ack: int, **more: Any) -> None:
        """One `message.ack` of any rank; `more`: chat_id, for a bare id that is not known."""
        self._call("POST", "acks", {"session": session, "id": message_id, "ack": ack, **more})

    def emit(self, session: str, event: str, payload: Any = None, *, raw: bytes | None = None) -> int:
        """An event of any shape, or with `raw` the very bytes of the body; returns how many hooks get it."""
        body = {"session": session, "event": event, "payload": payload}
        if raw is not None:
            body["raw"] = base64.b64encode(raw).decode()
        return int(self._call("POST", "events", body)["hooks"])

    def call(self, session: str, *, sender: str, event: str = "received", **more: Any) -> str:
        """Someone calls; returns the call's id. `event`: received, accepted, rejected."""
        return str(self._call("POST", "calls", {"session": session, "from": sender, "event": event, **more})["id"])

    def presence(self, session: str, chat_id: str, presence: str) -> None:
        """online, offline, typing, recording or paused."""
        self._call("POST", "presence", {"session": session, "chat_id": chat_id, "presence": presence})

    def remove_files(self, session: str) -> int:
        """As when WAHA has cleaned up; returns how many."""
        return int(self._call("DELETE", f"files/{session}")["removed"])

    def phone_sends(self, session: str, *, to: str, text: str | None, **more: Any) -> str:
        """The owner types on his phone; returns the full message id. `more`: as for inbound, and acks."""
        return str(self._call("POST", "phone-sends", {"session": session, "to": to, "text": text, **more})["id"])

    # -- waiting --

    def wait_for_status(self, session: str, status: str, *, seconds: float = 20.0) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            for found in self.state()["sessions"]:
                if found["name"] == session and found["status"] == status:
                    return dict(found)
            return None

        return wait_until(reached, f"session {session} to be {status}", seconds=seconds)

    def wait_for_book(self, count: int, *, seconds: float = 20.0, **filters: Any) -> list[dict[str, Any]]:
        """The book, once it holds at least `count` entries."""

        def filled() -> list[dict[str, Any]] | None:
            found = self.book(**filters)
            return found if len(found) >= count else None

        return wait_until(filled, f"{count} entries in the book", seconds=seconds)

    def wait_for_webhooks(self, *, seconds: float = 20.0) -> None:
        """Until no webhook is on its way; acks that are still to come are not counted."""
        wait_until(
            lambda: self.state()["webhooks"]["pending"] == 0 or None,
            "webhooks to be through",
            seconds=seconds,
        )

    def _call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        params: dict[str, str] | None = None,
    ) -> Any:
        answer = self._http.request(
            method, f"{self.base_url}/control/{path}", json=body, params=params, timeout=CALL_SECONDS
        )
        if not answer.ok:
            raise SimulatorError(f"{method} /control/{path}: {answer.status_code} {answer.text}")
        return answer.json()


class SimulatorProcess:
    """`python -m simulator` on a free port of 127.0.0.1, ended with the block and with this process.

    On Linux the kernel ends it when the thread that started it ends, so start it from one that lives on.
    """

    def __init__(
        self,
        *,
        time_scale: float = 0.05,
        version: str = "2026.7.1",
        engine: str = "NOWEB",
        api_key: str = "test-key",
        port: int = 0,
        seed: int | None = 1,
        book: Path | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        self.api_key = api_key
        self.port = port
        self._command = [sys.executable, "-m", "simulator", "--die-with-parent"]
        self._command += ["--time-scale", str(time_scale), "--version", version, "--engine", engine]
        self._command += ["--api-key", api_key, *options]
        if seed is not None:
            self._command += ["--seed", str(seed)]
        if book is not None:
            self._command += ["--book", str(book)]
        self._process: subprocess.Popen[bytes] | None = None
        self._control: SimulatorControl | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def control(self) -> SimulatorControl:
        assert self._control is not None
        return self._control

    def start(self) -> None:
        """Returns when it listens; the port is kept, so that a second start finds the same one."""
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self.port = self._listening_port()
        self._control = SimulatorControl(self.url)

    def stop(self) -> None:
        """End it, gently first; fine when it is gone."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a crash: no goodbye."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _listening_port(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if readable else b""
        if not line:
            self.kill()
            raise SimulatorError("the simulator did not start")
        return int(json.loads(line)["port"])

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is None:
            return
        try:
            os.kill(process.pid, how)
            process.wait(END_SECONDS)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            process.kill()
        finally:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def wait_until(look: Callable[[], Found | None], what: str, *, seconds: float) -> Found:
    """What `look` finds, once it finds something; it looks every 20 ms. Raises SimulatorError."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise SimulatorError(f"waited {seconds} s for {what}")
        pause.wait(0.02)
