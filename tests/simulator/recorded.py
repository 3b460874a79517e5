"""The exchanges and deliveries recorded from a running WAHA 2026.2.1."""

import base64
import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parent.parent / "cases" / "waha-recorded"


def exchanges() -> dict[str, dict[str, Any]]:
    """By name."""
    rows = (json.loads(line) for line in (CASES / "exchanges.jsonl").read_text("utf-8").splitlines())
    return {row["name"]: row for row in rows}


def deliveries() -> list[dict[str, Any]]:
    """Each with `raw` (the body's bytes) and `body` (read)."""
    found = []
    for line in (CASES / "deliveries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        raw = base64.b64decode(row["body_b64"])
        found.append(row | {"raw": raw, "body": json.loads(raw)})
    return found


def shape(value: Any) -> Any:
    """Keys and types, all the way down; a list has the shape of its first element."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__
