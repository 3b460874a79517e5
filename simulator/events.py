"""Which events a message causes, and their payloads."""

from typing import Any

from simulator import engines, keeping
from simulator.delivery import Posting
from simulator.messages import Message
from simulator.session import Session
from simulator.world import World

# Kinds that are told of by an event of their own.
_OWN_EVENTS = keeping.CHANGES | {"waiting"}


def tell(world: World, session: Session, message: Message) -> list[Posting]:
    """Post what WAHA posts of one message; returns the deliveries begun.

    Reactions, edits, revokes and votes have events of their own and are never `message`.
    """
    if session.ignores(message.chat_id) or not _is_heard(session, message):
        return []
    event, payload = _payload(session, message)
    if event != "message.any" or message.from_me:
        return session.emit(event, payload)
    # One id for both, as measured.
    event_id = world.ids.event(world.clock.now_ms())
    return [
        *session.emit("message", payload, event_id=event_id),
        *session.emit("message.any", payload, event_id=event_id),
    ]


def _is_heard(session: Session, message: Message) -> bool:
    """Looked at first for what is sent by the thousand."""
    return message.content.kind in _OWN_EVENTS or session.is_heard("message.any") or session.is_heard("message")


def _payload(session: Session, message: Message) -> tuple[str, dict[str, Any]]:
    me = session.me or {}
    engine = session.engine
    match message.content.kind:
        case "reaction":
            return "message.reaction", _reaction(session, message)
        case "edit":
            return "message.edited", engines.payload(engine, message, me) | {"editedMessageId": message.content.target}
        case "revoke":
            after = engines.payload(engine, message, me)
            revoked = {"before": None, "after": after, "revokedMessageId": message.content.target}
            return "message.revoked", revoked | {"_data": after["_data"]}
        case "vote":
            return "poll.vote", _vote(session, message)
        case "vote_failed":
            return "poll.vote.failed", _vote(session, message)
        case "waiting" if engine.name == "WEBJS":
            return "message.waiting", engines.payload(engine, message, me)
        case _:
            return "message.any", engines.payload(engine, message, me)


def _reaction(session: Session, message: Message) -> dict[str, Any]:
    me = session.me or {}
    target = session.messages.find(message.content.target or "")
    about = {"text": message.text, "messageId": target.full if target else message.content.target}
    head = session.engine.head(message, me)
    return head | {"reaction": about, "_data": session.engine.details(message, me)}


def _vote(session: Session, message: Message) -> dict[str, Any]:
    """`from` and `to` as on every engine: who voted, and where."""
    me_id = (session.me or {}).get("id", "")
    poll = session.messages.find(message.content.target or "")
    vote = {
        "id": message.full,
        "from": message.author(me_id),
        "to": me_id if not message.from_me else message.chat_id,
        "fromMe": message.from_me,
        "participant": message.participant,
        "selectedOptions": message.data["pollUpdateMessage"]["selectedOptions"],
        "timestamp": message.at * 1000,
    }
    about = {
        "id": poll.full if poll else message.content.target,
        "from": poll.author(me_id) if poll else message.chat_id,
        "to": message.chat_id,
        "fromMe": poll.from_me if poll else True,
    }
    return {"vote": vote, "poll": about, "_data": session.engine.details(message, session.me or {})}
