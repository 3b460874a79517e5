"""GOWS: a full id in the answers, whatsmeow's `Info` inside, no SERVER ack."""

from typing import Any

from simulator import addresses
from simulator.engines.base import Me, tail
from simulator.messages import ACK_NAMES, Message


class Gows:
    name = "GOWS"
    takes_ids = True
    first_ack = 1

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        answered: dict[str, Any] = {"id": message.full, "_data": None}
        if addresses.is_group(message.chat_id):
            answered["id"] = f"{message.full}_{me.get('id', '')}"
        return answered

    def payload(self, message: Message, me: Me) -> dict[str, Any]:
        head: dict[str, Any] = {
            "id": message.full,
            "timestamp": message.at,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
            "to": message.participant if addresses.is_group(message.chat_id) else None,
            "participant": message.participant,
        }
        return head | tail(message, me, self._data(message, me))

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:
        return {
            "id": message.full,
            "from": message.chat_id,
            "to": me.get("id"),
            "participant": None,
            "fromMe": message.from_me,
            "ack": ack,
            "ackName": ACK_NAMES.get(ack, "UNKNOWN"),
            "_data": {"MessageIDs": [message.bare], "Type": "read" if ack == 3 else ""},
        }

    def reports(self, ack: int) -> bool:
        """Never PENDING nor SERVER."""
        return ack not in (0, 1)

    def stored(self, message: Message, me: Me) -> dict[str, Any]:
        return self.payload(message, me)

    @staticmethod
    def _data(message: Message, me: Me) -> dict[str, Any]:
        chat = addresses.to_engine(message.chat_id)
        sender = me.get("id", "") if message.from_me else (message.participant or message.chat_id)
        info: dict[str, Any] = {
            "Chat": chat,
            "Sender": addresses.to_engine(sender),
            "SenderAlt": message.phone_jid or "",
            "IsFromMe": message.from_me,
            "IsGroup": addresses.is_group(message.chat_id),
            "ID": message.bare,
            "PushName": message.push_name or "",
            "Timestamp": message.at,
        }
        return {"Info": info, "Message": message.content}
