"""The demo's one HTTP client: the product's API as an integrator calls it, and the simulator's control API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

_TIMEOUT = (3.05, 30.0)


class Client:
    """Calls one server, as JSON. Raises requests' errors; a refusal is an HTTPError."""

    def __init__(self, base_url: str, *, key: str = "") -> None:
        self._base_url = base_url
        self._http = requests.Session()
        self._http.trust_env = False
        if key:
            self._http.headers["Authorization"] = f"Bearer {key}"

    def get(self, path: str, **query: str) -> Any:
        """The answer's JSON."""
        return self._answer(self._http.get(self._base_url + path, params=query, timeout=_TIMEOUT))

    def post(self, path: str, body: Mapping[str, Any], **headers: str) -> Any:
        """The answer's JSON. Header names: underscores stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._answer(self._http.post(self._base_url + path, json=body, headers=named, timeout=_TIMEOUT))

    @staticmethod
    def _answer(response: requests.Response) -> Any:
        response.raise_for_status()
        return response.json()
