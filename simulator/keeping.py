"""What a session and its phones remember of a message."""

from dataclasses import replace
from typing import Any

from simulator.contents import Content
from simulator.messages import Message
from simulator.session import Session
from simulator.world import World

# Kinds that change another message and are none of their own in a chat.
CHANGES = frozenset({"reaction", "edit", "revoke", "vote", "vote_failed"})


def keep(world: World, session: Session, message: Message) -> None:
    """Put it into the session's store, its file where it can be fetched; or change the one it is about."""
    session.activity_ms = world.clock.now_ms()
    content = message.content
    if content.kind in CHANGES:
        _change(session, message)
        return
    if content.file is not None:
        if message.media is None:
            url = world.files.put(session.name, message.bare, content.file)
            message.media = shown(content.file.mimetype, content.file.filename, url=url)
        message.content = replace(content, file=content.file.bare())
    if not message.from_me:
        session.heard(message)
    session.messages.add(message)


def whole(world: World, session: Session, message: Message) -> Content:
    """The content with its file, which a message itself does not hold; without one when it is gone."""
    if message.content.file is None:
        return message.content
    url = (message.media or {}).get("url") or ""
    return replace(message.content, file=world.files.get(session.name, url.rpartition("/")[2]))


def shown(mimetype: str, filename: str | None, *, url: str | None, error: str | None = None) -> dict[str, Any]:
    """`media` of a message, in WAHA's order; with `error` the file could not be fetched."""
    media: dict[str, Any] = {"url": url, "filename": filename, "mimetype": mimetype}
    return media | ({"error": {"details": error}} if error else {})


def _change(session: Session, message: Message) -> None:
    content = message.content
    target = session.messages.find(content.target or "", chat_id=message.chat_id)
    if target is None or content.kind == "vote_failed":
        return
    match content.kind:
        case "edit":
            target.content = replace(
                target.content, body=content.body, data=content.data["protocolMessage"]["editedMessage"]
            )
        case "revoke":
            target.is_revoked = True
        case _:
            shown_as = content.body if content.kind == "reaction" else ", ".join(_options(message))
            author = message.author("me")
            target.reactions = (target.reactions or {}) | {author: shown_as or ""}


def _options(message: Message) -> list[str]:
    return list(message.data["pollUpdateMessage"]["selectedOptions"])
