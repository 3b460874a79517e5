"""What happens to groups, and the events it causes."""

from collections.abc import Iterable
from typing import Any

from simulator import addresses
from simulator.groups import Group, Member
from simulator.session import Session
from simulator.world import World


def found(
    world: World,
    session: Session,
    *,
    subject: str,
    members: Iterable[Member],
    group_id: str | None = None,
    owner: str | None = None,
    **settings: Any,
) -> Group:
    """A group with this account in it, its founder unless `owner` says otherwise. `settings` are fields of Group."""
    me = (session.me or {}).get("id", "")
    group = Group(
        id=group_id or world.ids.group(),
        subject=subject,
        owner=owner or me,
        created_at=int(world.clock.now()),
        invite=world.ids.invite(),
        **settings,
    )
    others = list(members)
    my_lid = (session.me or {}).get("lid") if any(other.lid for other in others) else None
    group.add([Member(me, my_lid, "superadmin" if group.owner == me else "participant"), *others])
    session.groups[group.id] = group
    _tell(world, session, group, "group.v2.join", {"group": group.as_v2()})
    if not session.ignores(group.id):
        session.emit("group.join", session.engine.group(group, session.me or {}))
    return group


def leave(world: World, session: Session, group: Group) -> None:
    """This account is in it no more, by itself or thrown out."""
    session.groups.pop(group.id, None)
    _tell(world, session, group, "group.v2.leave", {"group": {"id": group.id}})


def add(world: World, session: Session, group: Group, members: Iterable[Member]) -> list[Member]:
    return _changed(world, session, group, "join", group.add(members))


def remove(world: World, session: Session, group: Group, chat_ids: Iterable[str]) -> list[Member]:
    return _changed(world, session, group, "leave", group.remove(chat_ids), role="left")


def promote(world: World, session: Session, group: Group, chat_ids: Iterable[str]) -> list[Member]:
    return _changed(world, session, group, "promote", group.set_role(chat_ids, "admin"))


def demote(world: World, session: Session, group: Group, chat_ids: Iterable[str]) -> list[Member]:
    return _changed(world, session, group, "demote", group.set_role(chat_ids, "participant"))


def update(world: World, session: Session, group: Group, **settings: Any) -> None:
    """`subject`, `description`, `announce`, `info_admins_only`."""
    for name, value in settings.items():
        setattr(group, name, value)
    shown = group.as_v2()
    names = {"announce": "membersCanSendMessages", "info_admins_only": "id"}
    changed = {names.get(name, name): shown[names.get(name, name)] for name in settings}
    _tell(world, session, group, "group.v2.update", {"group": {"id": group.id} | changed})


def member(world: World, chat_id: str, *, as_lid: bool = False, role: str = "participant") -> Member:
    """Whoever stands behind a chat id or a bare phone."""
    pn = addresses.to_public(addresses.with_suffix(chat_id))
    lid = world.directory.lid_of(addresses.phone_of(pn)) if as_lid else None
    return Member(pn, lid, role)


def _changed(
    world: World, session: Session, group: Group, kind: str, members: list[Member], *, role: str | None = None
) -> list[Member]:
    if members:
        shown = [member.as_v2() | ({"role": role} if role else {}) for member in members]
        body = {"group": {"id": group.id}, "type": kind, "participants": shown}
        _tell(world, session, group, "group.v2.participants", body)
    return members


def _tell(world: World, session: Session, group: Group, event: str, body: dict[str, Any]) -> None:
    """These are stamped in milliseconds."""
    if session.ignores(group.id):
        return
    details = {"id": group.id, "author": addresses.to_engine((session.me or {}).get("id", ""))}
    session.emit(event, body | {"timestamp": world.clock.now_ms(), "_data": details})
