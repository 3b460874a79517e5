"""What the rest of the simulator asks of an engine."""

from typing import Any, Protocol, TypedDict

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

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        """The body of a successful send."""

    def payload(self, message: Message, me: Me) -> dict[str, Any]:
        """The payload of `message` and `message.any`."""

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:
        """The payload of `message.ack`."""

    def reports(self, ack: int) -> bool:
        """Whether this engine emits `message.ack` for it."""

    def stored(self, message: Message, me: Me) -> dict[str, Any]:
        """The body of a look-up by id."""


def reply_of(message: Message, me: Me) -> dict[str, Any] | None:
    """`replyTo`: the quoted message, by its bare id."""
    quoted = message.quoted
    if quoted is None:
        return None
    author = me.get("id", "") if quoted.from_me else (quoted.participant or quoted.chat_id)
    return {"id": quoted.bare, "participant": author, "body": quoted.text, "_data": quoted.content}


def tail(message: Message, me: Me, data: dict[str, Any]) -> dict[str, Any]:
    """The fields every engine ends a message payload with."""
    return {
        "body": message.text,
        "hasMedia": False,
        "media": None,
        "ack": message.ack,
        "ackName": ACK_NAMES.get(message.ack, "UNKNOWN"),
        "location": None,
        "vCards": None,
        "replyTo": reply_of(message, me),
        "_data": data,
    }
