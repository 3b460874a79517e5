"""What someone writes on command: from the control API's words to a message's content."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from simulator import addresses, contents, keeping
from simulator.contents import Content
from simulator.files import File, sample
from simulator.messages import Message
from simulator.session import Session

FETCH_ERROR = "TypeError: fetch failed"


class CompositionError(ValueError):
    """A command that makes no message; the text names the field."""


def compose(session: Session, body: Mapping[str, Any], *, chat_id: str, quoted: Message | None, at_ms: int) -> Content:
    """The content that `body` describes, its `type` being text when not told. Raises CompositionError."""
    kind = _text(body, "type") or ("empty" if body.get("text", "") is None else "text")
    context = _context(session, quoted)
    if kind in contents.MEDIA:
        return _media(kind, body, context, at_ms)
    if kind in _TARGETED:
        return _TARGETED[kind](_key(session, body, chat_id), body, at_ms)
    if kind in _PLAIN:
        return _PLAIN[kind](body, context)
    known = ", ".join(sorted({*contents.MEDIA, *_TARGETED, *_PLAIN}))
    raise CompositionError(f"type must be one of {known}")


def media_of(body: Mapping[str, Any], content: Content) -> dict[str, Any] | None:
    """`media` as WAHA shows it when it could not fetch the file (`media_error`); None when all is well."""
    error = body.get("media_error")
    if not error or content.file is None:
        return None
    file = content.file
    return keeping.shown(file.mimetype, file.filename, url=None, error=error if isinstance(error, str) else FETCH_ERROR)


def _context(session: Session, quoted: Message | None) -> dict[str, Any] | None:
    if quoted is None:
        return None
    author = quoted.author((session.me or {}).get("id", ""))
    return contents.context(stanza_id=quoted.bare, participant=addresses.to_engine(author), quoted=quoted.data)


def _media(kind: str, body: Mapping[str, Any], context: dict[str, Any] | None, at_ms: int) -> Content:
    """`data` (base64), `mimetype`, `filename`, `text` as the caption; a sample where no data is given."""
    file = sample(kind)
    if body.get("data") is not None:
        file = File(_decoded(body["data"]), file.mimetype, file.filename)
    mimetype, filename = _text(body, "mimetype"), _text(body, "filename")
    file = File(file.data, mimetype or file.mimetype, filename or file.filename)
    return contents.media(kind, file, caption=_text(body, "text"), context=context, at=at_ms // 1000, is_sent=False)


def _typed(body: Mapping[str, Any], context: dict[str, Any] | None) -> Content:
    return contents.typed(_required(body, "text"), context=context)


def _location(body: Mapping[str, Any], context: dict[str, Any] | None) -> Content:
    latitude, longitude = _number(body, "latitude"), _number(body, "longitude")
    return contents.location(
        latitude, longitude, name=_text(body, "name"), address=_text(body, "address"), context=context
    )


def _contact(body: Mapping[str, Any], context: dict[str, Any] | None) -> Content:
    """`vcards` as they are, or `contacts` with `name`, `phone`, `organization`."""
    if body.get("vcards") is not None:
        return contents.contacts(_texts(body, "vcards"), context=context)
    people = body.get("contacts")
    if not isinstance(people, list) or not people or not all(isinstance(person, dict) for person in people):
        raise CompositionError("contacts must be a list of objects with name and phone")
    names = [_required(person, "name") for person in people]
    cards = [
        contents.vcard(
            name=name,
            phone="+" + _required(person, "phone"),
            whatsapp_id=_required(person, "phone"),
            organization=_text(person, "organization"),
        )
        for name, person in zip(names, people, strict=True)
    ]
    return contents.contacts(cards, names=names, context=context)


def _poll(body: Mapping[str, Any], context: dict[str, Any] | None) -> Content:  # noqa: ARG001 - one shape for all
    return contents.poll(_required(body, "name"), _texts(body, "options"), several=bool(body.get("several")))


_PLAIN: dict[str, Callable[[Mapping[str, Any], dict[str, Any] | None], Content]] = {
    "text": _typed,
    "location": _location,
    "contact": _contact,
    "poll": _poll,
    "empty": lambda *_: contents.empty(),
    "waiting": lambda *_: replace(contents.empty(), kind="waiting"),
    "view_once": lambda *_: contents.view_once(),
    "system": lambda *_: contents.system(),
    "unsupported": lambda *_: contents.unsupported(),
}


def _key(session: Session, body: Mapping[str, Any], chat_id: str) -> dict[str, Any]:
    """The engine's key of `target`, a full or a bare id; one that is not known counts as the account's own."""
    target = _required(body, "target")
    known = session.messages.find(target)
    if known is not None:
        return known.key
    is_own = not target.startswith("false_")
    return {"remoteJid": addresses.to_engine(chat_id), "fromMe": is_own, "id": addresses.bare_id(target)}


_TARGETED: dict[str, Callable[[dict[str, Any], Mapping[str, Any], int], Content]] = {
    "reaction": lambda key, body, at_ms: contents.reaction(key, emoji=_text(body, "text") or "", at_ms=at_ms),
    "edit": lambda key, body, at_ms: contents.edit(
        key, body=_required(body, "text"), edited={"conversation": body["text"]}, at_ms=at_ms
    ),
    "revoke": lambda key, *_: contents.revoke(key),
    "vote": lambda key, body, at_ms: contents.vote(key, options=_texts(body, "options"), at_ms=at_ms),
    "vote_failed": lambda key, _, at_ms: replace(contents.vote(key, options=(), at_ms=at_ms), kind="vote_failed"),
}


def _decoded(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise CompositionError("data must be base64") from None


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise CompositionError(f"{name} must be a text")
    return value


def _required(body: Mapping[str, Any], name: str) -> str:
    value = _text(body, name)
    if value is None:
        raise CompositionError(f"missing {name}")
    return value


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CompositionError(f"{name} must be a list of texts")
    return value


def _number(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CompositionError(f"{name} must be a number")
    return value
