"""A message leaves: the phone gets it, the echo and the acks follow."""

import asyncio
import contextlib
from collections.abc import Callable

from simulator import addresses, events, keeping, refusals
from simulator.book import Entry
from simulator.contents import Content
from simulator.delivery import Posting
from simulator.faults import Plan
from simulator.messages import ACK_NAMES, Message
from simulator.restriction import CODE, Restriction
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
    content: Content,
    given_id: str | None = None,
    quoted: Message | None = None,
    requested_at: float,
) -> tuple[Message, Entry]:
    """The moment of sending: written in the book, known to the session. Raises EngineError when restricted."""
    public_chat = addresses.to_public(chat_id) if chat_id.endswith("@s.whatsapp.net") else chat_id
    if session.restriction is not None:
        _refuse_at_once(world, session, public_chat)
    takes_id = given_id is not None and world.takes_id(session)
    bare = given_id if takes_id and given_id is not None else world.ids.sent_message()
    message = Message(
        bare=bare,
        chat_id=public_chat,
        from_me=True,
        content=content,
        at=int(requested_at),
        ack=session.engine.first_ack,
        quoted=quoted,
    )
    keeping.keep(world, session, message)
    entry = world.book.record(
        session=session.name,
        chat_id=public_chat,
        text=content.body,
        message_id=bare,
        id_given=takes_id,
        source="api",
        requested_at=requested_at,
        kind=content.kind,
        reply_to=None if quoted is None else quoted.bare,
        target=content.target,
        file=content.file,
    )
    return message, entry


async def echo(world: World, session: Session, message: Message, plan: Plan) -> None:
    """Emit `message.any` of an own message before the answer, after it, late or never."""
    order = plan.echo or ("before" if world.chance.hits(world.options.echo_before_share) else "after")
    if order == "none":
        return

    def emit() -> list[Posting]:
        return events.tell(world, session, message)

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
    restriction = _restriction(world, session, message.chat_id) if session.restriction is not None else None
    if restriction is not None or not _may_write(session, message.chat_id):
        _later(world, session, world.options.ack_delays[0], plan, _refused(world, session, message, restriction))
        return
    for ack, delay in _acks(world, message, plan):
        if addresses.is_group(message.chat_id) and ack > SERVER:
            _follow_members(world, session, message, ack, delay, plan)
        else:
            _later(world, session, delay, plan, _acknowledge(session, message, ack, plan.ack_times))


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
        if session.is_heard("message.ack") and session.engine.reports(ack) and not session.ignores(message.chat_id):
            payload = session.engine.ack_payload(message, ack, session.me or {})
            for _ in range(times):
                session.emit("message.ack", payload)

    return acknowledge


def _follow_members(world: World, session: Session, message: Message, ack: int, delay: float, plan: Plan) -> None:
    """In a group each member's phone tells for itself, as `message.ack.group`."""
    group = session.groups.get(message.chat_id)
    if group is None or session.ignores(message.chat_id) or not session.tells_group_acks:
        return
    rank = session.engine.group_device_ack if ack == DEVICE else ack
    me_id = (session.me or {}).get("id", "")
    for member in group.members.values():
        if member.pn == me_id:
            continue

        def acknowledge(member_id: str = member.id, pn: str = member.pn) -> None:
            payload = session.engine.group_ack_payload(
                message,
                rank,
                session.me or {},
                member=member_id,
                phone_jid=addresses.to_engine(pn),
                at=int(world.clock.now()),
            )
            for _ in range(plan.ack_times):
                session.emit("message.ack.group", payload)

        _later(world, session, delay, plan, acknowledge)


def _later(world: World, session: Session, delay: float, plan: Plan, call: Callable[[], None]) -> None:
    seconds = world.clock.scaled(delay) + plan.ack_delay
    asyncio.get_running_loop().call_later(seconds, lambda: session.when_working(call))


# -- a restricted account -----------------------------------------------------------------------------


def _restriction(world: World, session: Session, chat_id: str) -> Restriction | None:
    """What forbids writing to this chat now; someone who wrote first may be answered."""
    restriction = session.restriction
    if restriction is None or not restriction.is_active(world.clock.now()):
        return None
    if restriction.replies_pass and session.has_heard_from(chat_id):
        return None
    return restriction


def _refuse_at_once(world: World, session: Session, chat_id: str) -> None:
    restriction = _restriction(world, session, chat_id)
    if restriction is None:
        return
    how = restriction.how or ("answer" if session.engine.refuses_at_once else "ack")
    if how == "answer":
        raise refusals.EngineError(f"server returned error {CODE}")


def _may_write(session: Session, chat_id: str) -> bool:
    """In a group where admins alone write, others are refused by the server."""
    group = session.groups.get(chat_id)
    return group is None or not group.announce or group.is_admin((session.me or {}).get("id", ""))


def _refused(world: World, session: Session, message: Message, restriction: Restriction | None) -> Callable[[], None]:
    def acknowledge() -> None:
        message.ack = -1
        payload = session.engine.ack_payload(message, -1, session.me or {})
        if restriction is not None and world.tells_restrictions:
            payload["error"] = restriction.as_ack_error()
        session.emit("message.ack", payload)

    return acknowledge
