"""Groups that a session is a member of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ROLES = ("participant", "admin", "superadmin")


@dataclass(slots=True)
class Member:
    """`pn` in the public form; `lid` where the group is addressed by hidden ids."""

    pn: str
    lid: str | None = None
    role: str = "participant"

    @property
    def id(self) -> str:
        return self.lid or self.pn

    def as_v2(self) -> dict[str, Any]:
        """WAHA's own shape, the same on every engine."""
        return {"id": self.id, "pn": self.pn, "role": self.role}


@dataclass(slots=True)
class Group:
    """`members` by `pn`; `announce` lets admins alone write; `created_at` in epoch seconds."""

    id: str
    subject: str
    owner: str
    created_at: int
    description: str = ""
    announce: bool = False
    info_admins_only: bool = False
    invite: str = ""
    members: dict[str, Member] = field(default_factory=dict)

    def find(self, chat_id: str) -> Member | None:
        """A member by phone or hidden id."""
        if chat_id in self.members:
            return self.members[chat_id]
        return next((member for member in self.members.values() if member.lid == chat_id), None)

    def is_admin(self, pn: str) -> bool:
        member = self.members.get(pn)
        return member is not None and member.role != "participant"

    def add(self, members: Iterable[Member]) -> list[Member]:
        """Returns those who were not in it before."""
        new = [member for member in members if member.pn not in self.members]
        self.members |= {member.pn: member for member in new}
        return new

    def remove(self, chat_ids: Iterable[str]) -> list[Member]:
        """Returns those who were in it."""
        found = [member for chat_id in chat_ids if (member := self.find(chat_id)) is not None]
        for member in found:
            self.members.pop(member.pn, None)
        return found

    def set_role(self, chat_ids: Iterable[str], role: str) -> list[Member]:
        """Returns those who have it now and had another before."""
        found = [member for chat_id in chat_ids if (member := self.find(chat_id)) is not None and member.role != role]
        for member in found:
            member.role = role
        return found

    def as_v2(self) -> dict[str, Any]:
        """As events of groups show it, the same on every engine."""
        return {
            "id": self.id,
            "subject": self.subject,
            "description": self.description,
            "invite": self.invite,
            "membersCanAddNewMember": True,
            "membersCanSendMessages": not self.announce,
            "newMembersApprovalRequired": False,
            "participants": [member.as_v2() for member in self.members.values()],
        }
