"""GOWS: a full id in the answers, whatsmeow's `Info` inside, no SERVER ack."""

from typing import Any

from simulator import addresses
from simulator.directory import Person
from simulator.engines.base import Me
from simulator.groups import Group
from simulator.messages import ACK_NAMES, Message


class Gows:
    name = "GOWS"
    takes_ids = True
    first_ack = 1
    group_device_ack = 2
    refuses_at_once = True

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        answered: dict[str, Any] = {"id": message.full, "_data": None}
        if addresses.is_group(message.chat_id):
            answered["id"] = f"{message.full}_{me.get('id', '')}"
        return answered

    def head(self, message: Message, me: Me) -> dict[str, Any]:  # noqa: ARG002
        return {
            "id": message.full,
            "timestamp": message.at,
            "from": message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
            "to": message.participant if addresses.is_group(message.chat_id) else None,
            "participant": message.participant,
        }

    def details(self, message: Message, me: Me) -> dict[str, Any]:
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
        return {"Info": info, "Message": message.data}

    def stored_details(self, message: Message, me: Me) -> dict[str, Any]:
        return self.details(message, me)

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

    def group_ack_payload(
        self, message: Message, ack: int, me: Me, *, member: str, phone_jid: str, at: int
    ) -> dict[str, Any]:
        told = self.ack_payload(message, ack, me)
        details = {"Sender": addresses.to_engine(member), "SenderAlt": phone_jid, "Timestamp": at}
        return told | {
            "id": f"{message.full}_{me.get('id', '')}",
            "participant": member,
            "_data": told["_data"] | details,
        }

    def reports(self, ack: int) -> bool:
        """Never PENDING nor SERVER."""
        return ack not in (0, 1)

    def group(self, group: Group, me: Me) -> dict[str, Any]:  # noqa: ARG002
        """whatsmeow's `GroupInfo`."""
        return {
            "JID": group.id,
            "OwnerJID": addresses.to_engine(group.owner),
            "Name": group.subject,
            "Topic": group.description,
            "IsLocked": group.info_admins_only,
            "IsAnnounce": group.announce,
            "GroupCreated": group.created_at,
            "AddressingMode": "lid" if any(member.lid for member in group.members.values()) else "pn",
            "Participants": [
                {
                    "JID": member.lid or addresses.to_engine(member.pn),
                    "PhoneNumber": addresses.to_engine(member.pn),
                    "LID": member.lid or "",
                    "IsAdmin": member.role != "participant",
                    "IsSuperAdmin": member.role == "superadmin",
                    "DisplayName": "",
                }
                for member in group.members.values()
            ],
        }

    def contact(self, person: Person) -> dict[str, Any]:
        return {"id": person.chat_id, "name": person.name, "pushname": person.push_name}

    def chat(self, chat_id: str, name: str | None, at: int) -> dict[str, Any]:
        return {"id": chat_id, "name": name, "conversationTimestamp": at}
