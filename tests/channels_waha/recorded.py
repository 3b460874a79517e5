"""The deliveries and exchanges recorded from a running WAHA 2026.2.1, with the key that signed them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CASES = Path(__file__).resolve().parent.parent / "cases" / "waha-recorded"
SESSION = "default"


@dataclass(frozen=True, slots=True)
class Delivery:
    event: str
    headers: dict[str, str]
    key: str
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        return dict(json.loads(self.body)["payload"])


@dataclass(frozen=True, slots=True)
class Exchange:
    name: str
    status: int
    body: bytes


def deliveries(event: str = "") -> list[Delivery]:
    rows = (json.loads(line) for line in (_CASES / "deliveries.jsonl").read_text("utf-8").splitlines())
    found = [Delivery(row["event"], row["headers"], row["hmac_key"], base64.b64decode(row["body_b64"])) for row in rows]
    return [delivery for delivery in found if event in {"", delivery.event}]


def exchanges(path: str = "") -> list[Exchange]:
    """Those whose path ends with ``path``."""
    rows = (json.loads(line) for line in (_CASES / "exchanges.jsonl").read_text("utf-8").splitlines())
    return [
        Exchange(row["name"], row["response"]["status"], json.dumps(row["response"]["body"]).encode())
        for row in rows
        if row["request"]["path"].endswith(path)
    ]
