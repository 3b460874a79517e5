"""What the rest of the simulator asks of an engine."""

from typing import Any, Protocol, TypedDict

from simulator.directory import Person
from simulator.groups import Group
from simulator.messages import ACK_NAMES, Message


class Me(TypedDict, total=False):
    """`me` of a session, as WAHA shows it."""

    id: str
    pushName: str
    lid: str


class Engine(Protocol):
    """One engine's shapes. Every `dict` is a JSON object as WAHA sends it."""

    name: str
    takes_ids: bool
    first_ack: int
    # The rank of `message.ack.group` that tells of a member's phone.
    group_device_ack: int
    # How a restricted account's send to a stranger fails: with an answer or with an ack.
    refuses_at_once: bool

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        """The body of a successful send."""

    def head(self, message: Message, me: Me) -> dict[str, Any]:
        """Who wrote to whom: what a payload begins with."""

    def details(self, message: Message, me: Me) -> dict[str, Any]:
        """`_data`: the message as the engine itself holds it."""

    def stored_details(self, message: Message, me: Me) -> dict[str, Any]:
        """`_data` of a message that is looked up."""

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:
        """The payload of `message.ack`."""

    def group_ack_payload(
        self, message: Message, ack: int, me: Me, *, member: str, phone_jid: str, at: int
    ) -> dict[str, Any]:
        """The payload of `message.ack.group`: one member's."""

    def reports(self, ack: int) -> bool:
        """Whether this engine emits `message.ack` for it."""

    def group(self, group: Group, me: Me) -> dict[str, Any]:
        """A group with its members."""

    def contact(self, person: Person) -> dict[str, Any]:
        """An entry of the address book."""

    def chat(self, chat_id: str, name: str | None, at: int) -> dict[str, Any]:
        """A row of the list of chats. `at`: its newest message, in epoch seconds."""


def payload(engine: Engine, message: Message, me: Me) -> dict[str, Any]:
    """The payload of `message` and `message.any`."""
    return engine.head(message, me) | tail(message, me, engine.details(message, me))


def stored(engine: Engine, message: Message, me: Me) -> dict[str, Any]:
    """The body of a look-up by id, and an item of a list of messages."""
    return engine.head(message, me) | tail(message, me, engine.stored_details(message, me))


def reply_of(message: Message, me: Me) -> dict[str, Any] | None:
    """`replyTo`: the quoted message, by its bare id."""
    quoted = message.quoted
    if quoted is None:
        return None
    author = quoted.author(me.get("id", ""))
    return {"id": quoted.bare, "participant": author, "body": quoted.text, "_data": quoted.data}


def tail(message: Message, me: Me, data: dict[str, Any]) -> dict[str, Any]:
    """The fields every engine ends a message payload with."""
    content = message.content
    return {
        "body": content.body,
        "hasMedia": content.file is not None,
        "media": message.media,
        "ack": message.ack,
        "ackName": ACK_NAMES.get(message.ack, "UNKNOWN"),
        "location": content.location,
        "vCards": content.vcards,
        "replyTo": reply_of(message, me),
        "_data": data,
    }
