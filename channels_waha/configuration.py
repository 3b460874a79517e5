"""What we ask of a session at WAHA, and how that is laid over what it has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import urlsplit

# Own and others' messages come as message.any; `message` would bring the latter twice.
EVENTS = (
    "message.any",
    "message.ack",
    "message.ack.group",
    "message.reaction",
    "message.edited",
    "message.revoked",
    "session.status",
)
# 2 s, 4 s, … 2^12 s: WAHA keeps a webhook for some four hours of our absence. It is all in its memory.
RETRIES = {"policy": "exponential", "delaySeconds": 2, "attempts": 12}


def wanted(*, webhook_url: str, secret: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of a new session."""
    return {
        "metadata": dict(metadata),
        # Groups are kept; stories, channels and lists are no conversations.
        "ignore": {"status": True, "groups": False, "channels": True, "broadcast": True},
        # Without its store NOWEB can look up no message, chat or hidden id.
        "noweb": {"store": {"enabled": True, "fullSync": False}},
        "webhooks": [
            {
                "url": webhook_url,
                "events": list(EVENTS),
                "hmac": {"key": secret},
                "retries": dict(RETRIES),
            }
        ],
    }


def merged(existing: object, ours: Mapping[str, Any]) -> dict[str, Any]:
    """``ours`` laid over what a session has: its proxy, its other webhooks and unknown fields stay.

    A PUT restarts a session, so this is compared with ``existing`` and put only where it differs.
    """
    base = deepcopy(existing) if isinstance(existing, dict) else {}
    hooks = base.pop("webhooks", None)
    found = _over(base, {name: value for name, value in ours.items() if name != "webhooks"})
    found["webhooks"] = _hooks(hooks, ours["webhooks"][0])
    return found


def _hooks(existing: object, ours: Mapping[str, Any]) -> list[Any]:
    """Our webhook in the place of any with the same path (our own address may have moved); the others stay."""
    hooks = [hook for hook in existing if isinstance(hook, dict)] if isinstance(existing, list) else []
    path = urlsplit(ours["url"]).path
    mine = next((hook for hook in hooks if _path(hook) == path), {})
    others = [hook for hook in hooks if _path(hook) != path]
    return [_over(mine, ours), *others]


def _path(hook: Mapping[str, Any]) -> str:
    url = hook.get("url")
    try:
        return urlsplit(url).path if isinstance(url, str) else ""
    except ValueError:
        return ""


def _over(base: object, top: Mapping[str, Any]) -> dict[str, Any]:
    """A deep merge of objects; everything else of ``top`` replaces."""
    found = dict(base) if isinstance(base, dict) else {}
    for name, value in top.items():
        found[name] = _over(found.get(name), value) if isinstance(value, Mapping) else value
    return found
