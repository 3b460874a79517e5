"""Callers who keep broadcasts going: they post, ask, pause and resume, and try again whatever happens to the web."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

import requests

from broadcast_project.demo import play

_TIMEOUT = (2.0, 8.0)
_NAMESPACE = UUID("6f0c2a52-5d0e-4f0e-9c1b-0a5f3a3f9d11")
_OVER = {"completed", "canceled", "failed"}


class Caller(threading.Thread):
    """One integrator: a broadcast at a time, each word of it marked with its round, until told to end."""

    def __init__(self, name: str, url: str, seeded: Mapping[str, Any], choice: random.Random) -> None:
        super().__init__(name=name, daemon=True)
        self._url, self._seeded, self._choice = url, seeded, choice
        self._ending = threading.Event()
        # Round → the broadcast's id.
        self.posted: dict[str, str] = {}
        self.over: set[str] = set()

    def end(self) -> None:
        """Post nothing new; the broadcast under way goes on."""
        self._ending.set()

    def run(self) -> None:
        number = 0
        while not self._ending.is_set():
            number += 1
            round_ = f"{self.name}{number}"
            body = play.body(self._seeded["group"], self._channels())
            body["variables"] = {"curso": f"Python {round_}", "link": f"https://app.example/{round_}."}
            key = str(uuid5(_NAMESPACE, f"{self._seeded['key']}{round_}"))
            answer = self._insist("POST", "", body, {"Idempotency-Key": key}, good={202})
            broadcast = answer["broadcast_id"]
            self.posted[round_] = broadcast
            self._follow(broadcast)
            self.over.add(broadcast)

    def _channels(self) -> Sequence[str]:
        return list(self._seeded["channels"])

    def _follow(self, broadcast: str) -> None:
        """Until it is over; now and then paused and resumed, by a person's whim."""
        while True:
            state = self._insist("GET", f"/{broadcast}", None, {}, good={200})
            if state["status"] in _OVER:
                return
            if self._choice.random() < 0.03:
                self._insist("POST", f"/{broadcast}/pause", {}, {}, good={200, 409})
            if state["status"] == "paused":
                self._insist("POST", f"/{broadcast}/resume", {}, {}, good={200, 409})
            time.sleep(0.5)

    def _insist(self, method: str, path: str, body: Any, headers: Mapping[str, str], *, good: set[int]) -> Any:
        """Ask until there is an answer: the web may be dead, or dying with the question."""
        key = {"Authorization": f"Bearer {self._seeded['key']}", **headers}
        address = f"{self._url}/api/v1/broadcasts{path}"
        while True:
            try:
                answer = requests.request(method, address, json=body, headers=key, timeout=_TIMEOUT)
                if answer.status_code in good:
                    return answer.json()
                # Under way elsewhere, limited, or its database away; anything else is a fault of ours.
                if answer.status_code not in {409, 429} and answer.status_code < 500:
                    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            except (requests.RequestException, ValueError):
                pass
            time.sleep(0.3)


class Waverer(Caller):
    """One who calls off each broadcast soon after it was posted."""

    def _follow(self, broadcast: str) -> None:
        time.sleep(self._choice.uniform(0, 3))
        self._insist("POST", f"/{broadcast}/cancel", {}, {}, good={200, 409})
        while self._insist("GET", f"/{broadcast}", None, {}, good={200})["status"] not in _OVER:
            time.sleep(0.5)
