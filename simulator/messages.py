"""The messages a session knows, and how a look-up finds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simulator import addresses
from simulator.contents import Content

ACK_NAMES = {-1: "ERROR", 0: "PENDING", 1: "SERVER", 2: "DEVICE", 3: "READ", 4: "PLAYED"}
KEPT = 200_000


@dataclass(slots=True)
class Message:
    """One message of a chat. `at` in epoch seconds; `media` as WAHA shows it, None without a file."""

    bare: str
    chat_id: str
    from_me: bool
    content: Content
    at: int
    source: str = "api"
    ack: int = 0
    participant: str | None = None
    phone_jid: str | None = None
    push_name: str | None = None
    quoted: "Message | None" = None
    media: dict[str, Any] | None = None
    is_revoked: bool = False
    # Who reacted or voted → with what; "" when taken back.
    reactions: dict[str, str] | None = None

    @property
    def text(self) -> str | None:
        return self.content.body

    @property
    def data(self) -> dict[str, Any]:
        """The engine's own object."""
        return self.content.data

    @property
    def full(self) -> str:
        return addresses.full_id(
            from_me=self.from_me,
            chat_id=self.chat_id,
            bare=self.bare,
            participant=None if self.from_me else self.participant,
        )

    @property
    def key(self) -> dict[str, Any]:
        """As the engine names it."""
        key: dict[str, Any] = {
            "remoteJid": addresses.to_engine(self.chat_id),
            "fromMe": self.from_me,
            "id": self.bare,
        }
        if self.participant is not None and not self.from_me:
            key["participant"] = addresses.to_engine(self.participant)
        return key

    def author(self, me_id: str) -> str:
        """Who wrote it, in the public form."""
        return me_id if self.from_me else (self.participant or self.chat_id)


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

    def newest_first(self, chat_ids: frozenset[str] | None = None) -> Iterator[Message]:
        """Those of these chats, or all."""
        for message in reversed(self._by_id.values()):
            if chat_ids is None or message.chat_id in chat_ids:
                yield message

    def last_of_chats(self) -> dict[str, Message]:
        """Each chat with its newest message, the newest chat first."""
        found: dict[str, Message] = {}
        for message in self.newest_first():
            found.setdefault(message.chat_id, message)
        return found

    def clear(self) -> None:
        self._by_id.clear()

    def __len__(self) -> int:
        return len(self._by_id)
