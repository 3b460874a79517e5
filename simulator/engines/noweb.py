"""NOWEB: raw Baileys in the answers, the chat as `from` even of one's own messages."""

from typing import Any

from simulator import addresses
from simulator.engines.base import Me, tail
from simulator.messages import ACK_NAMES, Message


class Noweb:
    name = "NOWEB"
    takes_ids = True
    first_ack = 0

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        """Raw Baileys: no `id` at the top, `messageTimestamp` a string."""
        answered: dict[str, Any] = {
            "key": {
                "remoteJid": addresses.to_engine(message.chat_id),
                "fromMe": True,
                "id": message.bare,
            },
            "message": message.content,
            "messageTimestamp": str(message.at),
            "status": "PENDING",
        }
        if addresses.is_group(message.chat_id):
            answered["participant"] = f"{addresses.phone_of(me.get('id', ''))}:7@s.whatsapp.net"
        return answered

    def payload(self, message: Message, me: Me) -> dict[str, Any]:
        if message.source == "api":
            return self._payload(message, me, self.answer(message, me))
        return self._payload(message, me, self._received(message))

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:  # noqa: ARG002
        """`from` is the chat, also for one's own message; there is no `to`."""
        return {
            "id": message.full,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "ack": ack,
            "ackName": ACK_NAMES.get(ack, "UNKNOWN"),
        }

    def reports(self, ack: int) -> bool:
        return ack != 0

    def stored(self, message: Message, me: Me) -> dict[str, Any]:
        data: dict[str, Any] = {
            "key": {
                "remoteJid": addresses.to_engine(message.chat_id),
                "fromMe": message.from_me,
                "id": message.bare,
            },
            "message": message.content,
            "messageTimestamp": message.at,
            "status": message.ack + 1,
        }
        return self._payload(message, me, data)

    def _payload(self, message: Message, me: Me, data: dict[str, Any]) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "id": message.full,
            "timestamp": message.at,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
        }
        if message.participant and not message.from_me:
            payload |= {"to": message.chat_id, "participant": message.participant}
        return payload | tail(message, me, data)

    @staticmethod
    def _received(message: Message) -> dict[str, Any]:
        """What came over the wire: from someone else, or from the phone itself."""
        key: dict[str, Any] = {
            "remoteJid": addresses.to_engine(message.chat_id),
            "fromMe": message.from_me,
            "id": message.bare,
        }
        in_group = message.participant is not None and not message.from_me
        if in_group and message.participant:
            key["participant"] = addresses.to_engine(message.participant)
        if message.phone_jid:
            key["participantAlt" if in_group else "remoteJidAlt"] = message.phone_jid
            key["addressingMode"] = "lid"
        data: dict[str, Any] = {
            "messageTimestamp": message.at,
            "broadcast": False,
            "key": key,
            "message": message.content,
        }
        if message.push_name:
            data["pushName"] = message.push_name
        return data | {"status": message.ack + 1}
