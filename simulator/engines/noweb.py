"""NOWEB: raw Baileys in the answers, the chat as `from` even of one's own messages."""

from typing import Any

from simulator import addresses
from simulator.directory import Person
from simulator.engines.base import Me
from simulator.groups import Group
from simulator.messages import ACK_NAMES, Message


class Noweb:
    name = "NOWEB"
    takes_ids = True
    first_ack = 0
    group_device_ack = 1  # a delivery receipt of a member shows as SERVER
    refuses_at_once = False

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        """Raw Baileys: no `id` at the top, `messageTimestamp` a string."""
        answered: dict[str, Any] = {
            "key": {
                "remoteJid": addresses.to_engine(message.chat_id),
                "fromMe": True,
                "id": message.bare,
            },
            "message": message.content.data,
            "messageTimestamp": str(message.at),
            "status": "PENDING",
        }
        if addresses.is_group(message.chat_id):
            answered["participant"] = f"{addresses.phone_of(me.get('id', ''))}:7@s.whatsapp.net"
        return answered

    def head(self, message: Message, me: Me) -> dict[str, Any]:  # noqa: ARG002
        head: dict[str, Any] = {
            "id": message.full,
            "timestamp": message.at,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
        }
        if message.participant and not message.from_me:
            head |= {"to": message.chat_id, "participant": message.participant}
        return head

    def details(self, message: Message, me: Me) -> dict[str, Any]:
        return self.answer(message, me) if message.source == "api" else self._received(message)

    def stored_details(self, message: Message, me: Me) -> dict[str, Any]:  # noqa: ARG002
        return {
            "key": message.key,
            "message": message.data,
            "messageTimestamp": message.at,
            "status": message.ack + 1,
        }

    def ack_payload(self, message: Message, ack: int, me: Me) -> dict[str, Any]:  # noqa: ARG002
        """`from` is the chat, also for one's own message; there is no `to`."""
        return {
            "id": message.full,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "ack": ack,
            "ackName": ACK_NAMES.get(ack, "UNKNOWN"),
        }

    def group_ack_payload(
        self, message: Message, ack: int, me: Me, *, member: str, phone_jid: str, at: int
    ) -> dict[str, Any]:
        """Here, and here only, the id of one's own message has a fourth part: oneself."""
        stamp = "receiptTimestamp" if ack == self.group_device_ack else "readTimestamp"
        return {
            "id": f"{message.full}_{me.get('id', '')}",
            "from": message.chat_id,
            "to": message.chat_id,
            "participant": member,
            "fromMe": True,
            "ack": ack,
            "ackName": ACK_NAMES.get(ack, "UNKNOWN"),
            "_data": {
                "key": message.key | {"participant": addresses.to_engine(member)},
                "receipt": {"userJid": phone_jid, stamp: at},
            },
        }

    def reports(self, ack: int) -> bool:
        return ack != 0

    def group(self, group: Group, me: Me) -> dict[str, Any]:  # noqa: ARG002
        """Baileys' metadata of a group."""
        return {
            "id": group.id,
            "addressingMode": "lid" if any(member.lid for member in group.members.values()) else "pn",
            "subject": group.subject,
            "owner": addresses.to_engine(group.owner),
            "creation": group.created_at,
            "size": len(group.members),
            "desc": group.description,
            "restrict": group.info_admins_only,
            "announce": group.announce,
            "isCommunity": False,
            "joinApprovalMode": False,
            "memberAddMode": True,
            "participants": [
                {
                    "id": member.lid or addresses.to_engine(member.pn),
                    "phoneNumber": addresses.to_engine(member.pn),
                    "admin": None if member.role == "participant" else member.role,
                }
                for member in group.members.values()
            ],
        }

    def contact(self, person: Person) -> dict[str, Any]:
        return {"id": person.chat_id, "lid": person.lid, "name": person.name, "pushname": person.push_name}

    def chat(self, chat_id: str, name: str | None, at: int) -> dict[str, Any]:
        return {"id": addresses.to_engine(chat_id), "name": name, "conversationTimestamp": at}

    @staticmethod
    def _received(message: Message) -> dict[str, Any]:
        """What came over the wire: from someone else, or from the phone itself."""
        raw = message.content.raw
        key = message.key
        if message.phone_jid:
            key["participantAlt" if "participant" in key else "remoteJidAlt"] = message.phone_jid
            key["addressingMode"] = "lid"
        data: dict[str, Any] = {
            "messageTimestamp": message.at,
            "broadcast": False,
            "key": key | raw.get("key", {}),
            "message": message.data,
        }
        if message.push_name:
            data["pushName"] = message.push_name
        return data | {"status": message.ack + 1} | {name: value for name, value in raw.items() if name != "key"}
