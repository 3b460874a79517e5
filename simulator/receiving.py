"""Messages that come from outside: from other people, and from the session's own phone."""

from dataclasses import replace
from typing import Any

from simulator import addresses, events, keeping, sending
from simulator.contents import Content
from simulator.faults import FINE
from simulator.messages import Message
from simulator.session import Session
from simulator.world import World

RECEIVED_ACK, SERVER_ACK = 2, 1


def inbound(
    world: World,
    session: Session,
    *,
    sender: str,
    content: Content,
    chat_id: str | None = None,
    message_id: str | None = None,
    push_name: str | None = None,
    as_lid: bool = False,
    is_hidden: bool = False,
    comes_twice: bool = False,
    quoted: Message | None = None,
    media: dict[str, Any] | None = None,
    at: int | None = None,
) -> Message:
    """Someone writes: `message` and `message.any`, both under one event id.

    `chat_id` is a group, a channel or the like, else the sender's own chat. `as_lid` shows a hidden id instead
    of the phone; `is_hidden` keeps from the account whose it is. `comes_twice` lets the same message come under
    the other id, too. `at` in epoch seconds.
    """
    phone = addresses.phone_of(sender)
    pn = addresses.with_suffix(sender)
    author = world.directory.lid_of(phone) if as_lid else pn
    phone_jid = f"{phone}@s.whatsapp.net" if as_lid and not is_hidden else None
    message = Message(
        bare=message_id or world.ids.phone_message(),
        chat_id=chat_id or author,
        from_me=False,
        content=content,
        source="app",
        at=int(world.clock.now()) if at is None else at,
        ack=RECEIVED_ACK,
        participant=_participant(chat_id, author),
        phone_jid=phone_jid,
        push_name=push_name,
        quoted=quoted,
        media=media,
    )
    lid = author if phone_jid else None

    def arrive() -> None:
        if push_name or lid:
            session.people.save(pn, push_name=push_name, lid=lid)
        _arrive(world, session, message)
        if comes_twice:
            other = pn if as_lid else world.directory.lid_of(phone)
            twin = replace(message, chat_id=chat_id or other, participant=_participant(chat_id, other))
            events.tell(world, session, replace(twin, phone_jid=None if as_lid else f"{phone}@s.whatsapp.net"))

    session.when_working(arrive)
    return message


def phone_sends(
    world: World,
    session: Session,
    *,
    to: str,
    content: Content,
    message_id: str | None = None,
    quoted: Message | None = None,
    with_acks: bool = False,
) -> Message:
    """The owner types a message on the phone: `message.any` with `fromMe` and source `app`."""
    message = Message(
        bare=message_id or world.ids.phone_message(),
        chat_id=addresses.with_suffix(to),
        from_me=True,
        content=content,
        at=int(world.clock.now()),
        source="app",
        ack=SERVER_ACK,
        push_name=session.push_name or None,
        quoted=quoted,
    )
    world.book.record(
        session=session.name,
        chat_id=message.chat_id,
        text=message.text,
        message_id=message.bare,
        id_given=message_id is not None,
        source="app",
        requested_at=world.clock.now(),
        kind=content.kind,
        reply_to=None if quoted is None else quoted.bare,
        target=content.target,
        file=content.file,
    )

    def arrive() -> None:
        _arrive(world, session, message)
        if with_acks and content.kind not in keeping.CHANGES:
            sending.follow(world, session, message, FINE)

    session.when_working(arrive)
    return message


def _arrive(world: World, session: Session, message: Message) -> None:
    keeping.keep(world, session, message)
    events.tell(world, session, message)


def _participant(chat_id: str | None, author: str) -> str | None:
    """Who wrote, where the chat does not say it; a channel has no authors."""
    return None if chat_id is None or chat_id.endswith("@newsletter") else author
