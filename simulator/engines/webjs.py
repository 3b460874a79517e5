"""WEBJS: an id object in the answers, real sender and recipient in the events, no id of the caller's."""

from typing import Any

from simulator import addresses
from simulator.directory import Person
from simulator.engines.base import Me
from simulator.groups import Group
from simulator.messages import ACK_NAMES, Message

# What whatsapp-web.js calls a type; the others have the name they have here.
_TYPES = {
    "text": "chat",
    "voice": "ptt",
    "video_note": "ptv",
    "contact": "vcard",
    "poll": "poll_creation",
    "edit": "chat",
    "revoke": "revoked",
    "system": "e2e_notification",
    "unsupported": "unknown",
    "empty": "ciphertext",
    "waiting": "ciphertext",
}


class Webjs:
    name = "WEBJS"
    takes_ids = False
    first_ack = 0
    group_device_ack = 2
    refuses_at_once = False

    def answer(self, message: Message, me: Me) -> dict[str, Any]:
        content = message.content
        answered: dict[str, Any] = {
            "_data": self.details(message, me),
            "id": self._id(message),
            "ack": message.ack,
            "hasMedia": content.file is not None,
            "body": content.body,
            "type": self._type(message),
            "timestamp": message.at,
            "from": me.get("id"),
            "to": message.chat_id,
            "deviceType": "web",
            "fromMe": True,
            "hasQuotedMsg": message.quoted is not None,
            "vCards": content.vcards or [],
            "links": [],
        }
        return answered | ({"location": content.location} if content.location else {})

    def head(self, message: Message, me: Me) -> dict[str, Any]:
        return {
            "id": message.full,
            "timestamp": message.at,
            "from": me.get("id") if message.from_me else message.chat_id,
            "fromMe": message.from_me,
            "source": message.source,
            "to": message.chat_id if message.from_me else me.get("id"),
            "participant": message.participant,
        }

    def details(self, message: Message, me: Me) -> dict[str, Any]:
        ends = (me.get("id"), message.chat_id) if message.from_me else (message.chat_id, me.get("id"))
        return {
            "id": self._id(message),
            "body": message.text,
            "type": self._type(message),
            "t": message.at,
            "notifyName": message.push_name,
            "from": ends[0],
            "to": ends[1],
            "ack": message.ack,
        }

    def stored_details(self, message: Message, me: Me) -> dict[str, Any]:
        return self.details(message, me)

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

    def group_ack_payload(
        self,
        message: Message,
        ack: int,
        me: Me,
        *,
        member: str,
        phone_jid: str,  # noqa: ARG002
        at: int,  # noqa: ARG002
    ) -> dict[str, Any]:
        return self.ack_payload(message, ack, me) | {"participant": member}

    def reports(self, ack: int) -> bool:
        return ack != 0

    def group(self, group: Group, me: Me) -> dict[str, Any]:  # noqa: ARG002
        """whatsapp-web.js' group chat."""
        metadata = {
            "id": _wid(group.id),
            "creation": group.created_at,
            "owner": _wid(group.owner),
            "subject": group.subject,
            "desc": group.description,
            "announce": group.announce,
            "restrict": group.info_admins_only,
            "participants": [
                {
                    "id": _wid(member.pn),
                    "isAdmin": member.role != "participant",
                    "isSuperAdmin": member.role == "superadmin",
                }
                for member in group.members.values()
            ],
        }
        return {"id": _wid(group.id), "name": group.subject, "isGroup": True, "groupMetadata": metadata}

    def contact(self, person: Person) -> dict[str, Any]:
        return {
            "id": person.chat_id,
            "number": addresses.phone_of(person.chat_id),
            "name": person.name,
            "pushname": person.push_name,
            "isWAContact": True,
            "isMyContact": person.name is not None,
            "isGroup": False,
            "isBlocked": False,
        }

    def chat(self, chat_id: str, name: str | None, at: int) -> dict[str, Any]:
        return {"id": _wid(chat_id), "name": name, "isGroup": addresses.is_group(chat_id), "timestamp": at}

    @staticmethod
    def _type(message: Message) -> str:
        kind = message.content.kind
        if kind == "contact" and len(message.content.vcards or ()) > 1:
            return "multi_vcard"
        return _TYPES.get(kind, kind)

    @staticmethod
    def _id(message: Message) -> dict[str, Any]:
        return {
            "fromMe": message.from_me,
            "remote": message.chat_id,
            "id": message.bare,
            "_serialized": message.full,
        }


def _wid(chat_id: str) -> dict[str, str]:
    user, _, server = chat_id.partition("@")
    return {"server": server, "user": user, "_serialized": chat_id}
