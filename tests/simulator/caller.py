"""A caller of the simulated WAHA, as tests use it."""

import json
import uuid
from http.client import HTTPConnection
from typing import Any

import requests

from tests.simulator_client import SimulatorProcess

SECONDS = 30


class Caller:
    """Sends the key and a time-out with every request; `control` is the simulator's control API."""

    def __init__(self, simulator: SimulatorProcess) -> None:
        self.url = simulator.url
        self.key = simulator.api_key
        self.control = simulator.control
        self._begun: list[HTTPConnection] = []
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers.update({"X-Api-Key": simulator.api_key, "Accept": "application/json"})

    def close(self) -> None:
        self._http.close()
        for connection in self._begun:
            connection.close()

    def get(self, path: str, **more: Any) -> requests.Response:
        return self._http.get(self.url + path, timeout=SECONDS, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> requests.Response:
        return self._http.post(self.url + path, json=body, timeout=SECONDS, **more)

    def put(self, path: str, body: Any = None) -> requests.Response:
        return self._http.put(self.url + path, json=body, timeout=SECONDS)

    def delete(self, path: str) -> requests.Response:
        return self._http.delete(self.url + path, timeout=SECONDS)

    def ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> requests.Response:
        """With these headers and no others; `body` is sent as it is when it is a string, else as JSON."""
        sent = body if isinstance(body, str) or body is None else json.dumps(body)
        return requests.request(method, self.url + path, data=sent, headers=headers, timeout=SECONDS)

    def begin(self, method: str, path: str) -> None:
        """Send a request and go on: it stands in line before whatever is asked next. Nobody reads its answer."""
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=SECONDS)
        connection.request(method, path, headers={"X-Api-Key": self.key})
        self._begun.append(connection)

    def new_session(self, *, start: bool = True, **config: Any) -> str:
        """Create a session under a name of its own."""
        name = f"s{uuid.uuid4().hex[:12]}"
        created = self.post("/api/sessions", {"name": name, "start": start, "config": config})
        assert created.status_code == 201, created.text
        return name

    def working_session(self, *, phone: str = "5511999990001", **config: Any) -> str:
        name = self.new_session(**config)
        self.control.pair(name, phone=phone)
        return name

    def send(
        self, session: str, chat_id: str = "5511988880001@c.us", text: str = "olá", **more: Any
    ) -> requests.Response:
        return self.post("/api/sendText", {"session": session, "chatId": chat_id, "text": text, **more})


def hook(url: str, *events: str, **more: Any) -> dict[str, Any]:
    """A webhook of a session's configuration."""
    return {"url": url, "events": list(events), "hmac": {"key": "hook-key"}, **more}
