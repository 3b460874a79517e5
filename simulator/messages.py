"""The messages a session knows, and how a look-up finds them."""

from dataclasses import dataclass
from typing import Any

from simulator import addresses

ACK_NAMES = {-1: "ERROR", 0: "PENDING", 1: "SERVER", 2: "DEVICE", 3: "READ", 4: "PLAYED"}
KEPT = 200_000


@dataclass(slots=True)
class Message:
    """One message of a chat, the engine's own shape in `content`. `at` in epoch seconds."""

    bare: str
    chat_id: str
    from_me: bool
    text: str | None
    at: int
    content: dict[str, Any]
    source: str = "api"
    ack: int = 0
    participant: str | None = None
    phone_jid: str | None = None
    push_name: str | None = None
    quoted: "Message | None" = None

    @property
    def full(self) -> str:
        return addresses.full_id(
            from_me=self.from_me,
            chat_id=self.chat_id,
            bare=self.bare,
            participant=None if self.from_me else self.participant,
        )


class MessageStore:
    """By bare id; the oldest go when it grows too large."""

    def __init__(self) -> None:
        self._by_id: dict[str, Message] = {}

    def add(self, message: Message) -> None:
        self._by_id[message.bare] = message
        if len(self._by_id) > KEPT:
            del self._by_id[next(iter(self._by_id))]

    def find(self, message_id: str, *, chat_id: str | None = None) -> Message | None:
        """By full or bare id; with `chat_id` only in that chat, as WAHA does."""
        message = self._by_id.get(addresses.bare_id(message_id))
        if message is None or (chat_id is not None and message.chat_id != chat_id):
            return None
        return message

    def clear(self) -> None:
        self._by_id.clear()

    def __len__(self) -> int:
        return len(self._by_id)


def text_content(text: str, quoted: Message | None, me_id: str) -> dict[str, Any]:
    """A Baileys message of a text that was sent over the API."""
    extended: dict[str, Any] = {"text": text}
    if quoted is not None:
        author = me_id if quoted.from_me else (quoted.participant or quoted.chat_id)
        extended["contextInfo"] = {
            "stanzaId": quoted.bare,
            "participant": addresses.to_engine(author),
            "quotedMessage": quoted.content,
        }
    return {"extendedTextMessage": extended}
