"""WEBJS: an id object in the answers, real sender and recipient in the events, no id of the caller's."""

from typing import Any

from simulator.engines.base import Me, tail
from simulator.messages import ACK_NAMES, Message


class Webjs:
    name = "WEBJS"
    takes_ids = False
    first_ack = 0

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        return {
            "_data": self._data(message, me),
            "id": self._id(message),
            "ack": message.ack,
            "hasMedia": False,
            "body": message.text,
            "type": "chat",
            "timestamp": message.at,
            "from": me.get("id"),
            "to": message.chat_id,
            "deviceType": "web",
            "fromMe": True,
            "hasQuotedMsg": message.quoted is not None,
            "vCards": [],
            "links": [],
        }

    def payload(self, message: Message, me: Me) -> dict[str, Any]:
        head: dict[str, Any] = {
            "id": message.full,
            "timestamp": message.at,
            "from": me.get("id") if message.from_me else message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
            "to": message.chat_id if message.from_me else me.get("id"),
            "participant": message.participant,
        }
        return head | tail(message, me, self._data(message, me))

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:
        return {
            "id": message.full,
            "from": me.get("id"),
            "to": message.chat_id,
            "participant": None,
            "fromMe": message.from_me,
            "ack": ack,
            "ackName": ACK_NAMES.get(ack, "UNKNOWN"),
            "_data": {"id": self._id(message), "ack": ack},
        }

    def reports(self, ack: int) -> bool:
        return ack != 0

    def stored(self, message: Message, me: Me) -> dict[str, Any]:
        return self.payload(message, me)

    @staticmethod
    def _id(message: Message) -> dict[str, Any]:
        return {
            "fromMe": message.from_me,
            "remote": message.chat_id,
            "id": message.bare,
            "_serialized": message.full,
        }

    def _data(self, message: Message, me: Me) -> dict[str, Any]:
        ends = (me.get("id"), message.chat_id) if message.from_me else (message.chat_id, me.get("id"))
        return {
            "id": self._id(message),
            "body": message.text,
            "type": "chat",
            "t": message.at,
            "notifyName": message.push_name,
            "from": ends[0],
            "to": ends[1],
            "ack": message.ack,
        }
