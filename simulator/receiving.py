"""Messages that come from outside: from other people, and from the session's own phone."""

from simulator import addresses
from simulator.messages import Message
from simulator.session import Session
from simulator.world import World

RECEIVED_ACK, SERVER_ACK = 2, 1


def inbound(
    world: World,
    session: Session,
    *,
    sender: str,
    text: str | None,
    message_id: str | None = None,
    push_name: str | None = None,
    as_lid: bool = False,
    reply_to: str | None = None,
    at: int | None = None,
) -> Message:
    """Someone writes: `message` and `message.any`, both under one event id."""
    phone = addresses.phone_of(sender)
    chat_id = addresses.lid_of(phone) if as_lid else addresses.with_suffix(sender)
    quoted = session.messages.find(reply_to) if reply_to else None
    content: dict[str, object] = {} if text is None else {"conversation": text}
    message = Message(
        bare=message_id or world.ids.phone_message(),
        chat_id=chat_id,
        from_me=False,
        text=text,
        at=int(world.clock.now()) if at is None else at,
        content=content,
        source="app",
        ack=RECEIVED_ACK,
        phone_jid=f"{phone}@s.whatsapp.net" if as_lid else None,
        push_name=push_name,
        quoted=quoted,
    )

    def emit() -> None:
        session.messages.add(message)
        session.activity_ms = world.clock.now_ms()
        payload = session.engine.payload(message, session.me or {})
        event_id = world.ids.event(world.clock.now_ms())
        session.emit("message", payload, event_id=event_id)
        session.emit("message.any", payload, event_id=event_id)

    session.when_working(emit)
    return message


def phone_sends(world: World, session: Session, *, to: str, text: str, message_id: str | None = None) -> Message:
    """The owner types a message on the phone: `message.any` with `fromMe` and source `app`."""
    chat_id = addresses.with_suffix(to)
    message = Message(
        bare=message_id or world.ids.phone_message(),
        chat_id=chat_id,
        from_me=True,
        text=text,
        at=int(world.clock.now()),
        content={"conversation": text},
        source="app",
        ack=SERVER_ACK,
        push_name=session.push_name or None,
    )
    world.book.record(
        session=session.name,
        chat_id=chat_id,
        text=text,
        message_id=message.bare,
        id_given=message_id is not None,
        source="app",
        requested_at=world.clock.now(),
    )

    def emit() -> None:
        session.messages.add(message)
        session.emit("message.any", session.engine.payload(message, session.me or {}))

    session.when_working(emit)
    return message
