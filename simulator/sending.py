"""A message leaves: the phone gets it, the echo and the acks follow."""

import asyncio
import contextlib
from collections.abc import Callable

from simulator import addresses
from simulator.book import Entry
from simulator.delivery import Posting
from simulator.faults import Plan
from simulator.messages import ACK_NAMES, Message, text_content
from simulator.session import Session
from simulator.world import World

SERVER, DEVICE, READ = 1, 2, 3
ECHO_LAG_SECONDS = 0.05
# Real seconds that an answer waits for an echo told to come before it.
ECHO_FIRST_SECONDS = 1.0


def act(
    world: World,
    session: Session,
    *,
    chat_id: str,
    text: str,
    given_id: str | None,
    reply_to: str | None,
    requested_at: float,
) -> tuple[Message, Entry]:
    """The moment of sending: written in the book, known to the session."""
    takes_id = given_id is not None and world.takes_id(session)
    bare = given_id if takes_id and given_id is not None else world.ids.sent_message()
    me = session.me or {}
    public_chat = addresses.to_public(chat_id) if chat_id.endswith("@s.whatsapp.net") else chat_id
    quoted = session.messages.find(reply_to) if reply_to else None
    message = Message(
        bare=bare,
        chat_id=public_chat,
        from_me=True,
        text=text,
        at=int(requested_at),
        content=text_content(text, quoted, me.get("id", "")),
        ack=session.engine.first_ack,
        quoted=quoted,
    )
    session.messages.add(message)
    session.activity_ms = world.clock.now_ms()
    entry = world.book.record(
        session=session.name,
        chat_id=public_chat,
        text=text,
        message_id=bare,
        id_given=takes_id,
        source="api",
        requested_at=requested_at,
    )
    return message, entry


async def echo(world: World, session: Session, message: Message, plan: Plan) -> None:
    """Emit `message.any` of an own message before the answer, after it, late or never."""
    order = plan.echo or ("before" if world.chance.hits(world.options.echo_before_share) else "after")
    if order == "none":
        return
    payload = session.engine.payload(message, session.me or {})

    def emit() -> list[Posting]:
        return session.emit("message.any", payload)

    if order == "before":
        deliveries = emit()
        if deliveries:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*(each.wait() for each in deliveries)), ECHO_FIRST_SECONDS)
    elif order == "late":
        asyncio.get_running_loop().call_later(plan.echo_seconds, emit)
    else:
        asyncio.get_running_loop().call_later(world.clock.scaled(ECHO_LAG_SECONDS), emit)


def follow(world: World, session: Session, message: Message, plan: Plan) -> None:
    """Let the acks of one message come, as its phone and the faults have it."""
    loop = asyncio.get_running_loop()
    for ack, delay in _acks(world, message, plan):
        seconds = world.clock.scaled(delay) + plan.ack_delay
        loop.call_later(seconds, _when_working(session, _acknowledge(session, message, ack, plan.ack_times)))


def _acks(world: World, message: Message, plan: Plan) -> list[tuple[int, float]]:
    """Which acks come, each with its seconds after sending."""
    delays = world.options.ack_delays
    reached = [SERVER]
    if world.directory.receives(message.chat_id):
        reached.append(DEVICE)
        if world.chance.hits(world.options.read_share):
            reached.append(READ)
    if plan.ack_error_after is not None:
        reached = [*(ack for ack in reached if ack <= plan.ack_error_after), -1]
    times = delays[: len(reached)]
    if plan.acks_reversed:
        reached.reverse()
    return [(ack, delay) for ack, delay in zip(reached, times, strict=True) if ack not in plan.dropped_acks]


def _acknowledge(session: Session, message: Message, ack: int, times: int) -> Callable[[], None]:
    def acknowledge() -> None:
        message.ack = max(message.ack, ack) if ack in ACK_NAMES and ack > 0 else ack
        if session.engine.reports(ack):
            for _ in range(times):
                session.emit("message.ack", session.engine.ack_payload(message, ack, session.me or {}))

    return acknowledge


def _when_working(session: Session, call: Callable[[], None]) -> Callable[[], None]:
    return lambda: session.when_working(call)
