"""What WAHA checks of a session's configuration, and what it silently leaves out."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from simulator import refusals
from simulator.retries import POLICIES
from simulator.session import ABSENT

EVENTS = [
    "session.status",
    "message",
    "message.reaction",
    "message.any",
    "message.ack",
    "message.ack.group",
    "message.waiting",
    "message.revoked",
    "message.edited",
    "state.change",
    "group.join",
    "group.leave",
    "group.v2.join",
    "group.v2.leave",
    "group.v2.update",
    "group.v2.participants",
    "presence.update",
    "poll.vote",
    "poll.vote.failed",
    "chat.archive",
    "call.received",
    "call.accepted",
    "call.rejected",
    "label.upsert",
    "label.deleted",
    "label.chat.added",
    "label.chat.deleted",
    "event.response",
    "event.response.failed",
    "engine.event",
    "*",
]
NAME_FORM = re.compile(r"[a-zA-Z0-9_-]*")
NAME_LENGTH = 54
CONFIG_FIELDS = ("webhooks", "metadata", "proxy", "debug", "ignore", "client", "noweb", "gows", "webjs")
HOOK_FIELDS = ("url", "events", "hmac", "retries", "customHeaders")


def session_name(body: dict[str, Any]) -> str | None:
    """The name to create under, None to have one drawn; raises the 400."""
    name = body.get("name")
    if name is None:
        return None
    if not isinstance(name, str):
        raise refusals.bad_request(["name must be a string"])
    problems = []
    if not NAME_FORM.fullmatch(name):
        problems.append(
            "Session name can only contain alphanumeric characters, hyphens, and underscores "
            "(a-z, A-Z, 0-9, -, _) or be empty"
        )
    if len(name) > NAME_LENGTH:
        problems.append(f"Session name must be shorter than or equal to {NAME_LENGTH} characters")
    if problems:
        raise refusals.bad_request(problems)
    return name or None


def session_config(body: dict[str, Any]) -> Any:
    """The configuration as WAHA keeps it: checked, unknown fields gone; ABSENT when not given."""
    if "config" not in body:
        return ABSENT
    config = body["config"]
    if config is None:
        return None
    if not isinstance(config, dict):
        raise refusals.bad_request(["nested property config must be either object or array"])
    problems = list(_problems(config))
    if problems:
        raise refusals.bad_request(problems)
    kept = {name: config[name] for name in CONFIG_FIELDS if name in config}
    if kept.get("webhooks") is not None:
        kept["webhooks"] = [{name: hook[name] for name in HOOK_FIELDS if name in hook} for hook in kept["webhooks"]]
    if isinstance(kept.get("noweb"), dict):
        kept["noweb"] = {"markOnline": True} | kept["noweb"]
    return kept


def _problems(config: dict[str, Any]) -> Iterator[str]:
    hooks = config.get("webhooks")
    if hooks is None:
        return
    if not isinstance(hooks, list):
        yield "config.webhooks must be an array"
        return
    for number, hook in enumerate(hooks):
        where = f"config.webhooks.{number}"
        if not isinstance(hook, dict):
            yield f"{where}.nested property webhooks must be either object or array"
            continue
        yield from _hook_problems(where, hook)


def _hook_problems(where: str, hook: dict[str, Any]) -> Iterator[str]:
    if not _is_url(hook.get("url")):
        yield f"{where}.url must be a URL address"
    events = hook.get("events")
    if not isinstance(events, list):
        yield f"{where}.events must be an array"
    elif any(event not in EVENTS for event in events):
        yield f"{where}.each value in events must be one of the following values: {', '.join(EVENTS)}"
    retries = hook.get("retries")
    if isinstance(retries, dict):
        if retries.get("policy") not in (None, *POLICIES):
            yield f"{where}.retries.policy must be one of the following values: {', '.join(POLICIES)}"
        for field in ("delaySeconds", "attempts"):
            if not _is_number(retries.get(field, 0)):
                yield f"{where}.retries.{field} must be a number conforming to the specified constraints"


def _is_url(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in value
    except ValueError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
