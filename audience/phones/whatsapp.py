"""Ids that WhatsApp sent: what kind they are, and whose phone, if any, they name."""

import re
from dataclasses import dataclass
from enum import StrEnum

from audience.phones.numbering import canonical, variants_of


class IdKind(StrEnum):
    PHONE = "phone"
    LID = "lid"
    BSUID = "bsuid"
    GROUP = "group"
    NEWSLETTER = "newsletter"
    BROADCAST = "broadcast"
    STATUS = "status"
    SYSTEM = "system"
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WhatsAppId:
    """One id, taken apart.

    `value` is the part before `@` as WhatsApp spells it, without the device
    suffix. `identity` and `variants` are filled for phones alone, so that the
    digits of a LID or a group can't be taken for a number.
    """

    kind: IdKind
    value: str
    identity: str | None = None
    variants: tuple[str, ...] = ()


# `@hosted` and `@hosted.lid` are accounts run by a provider (coexistence).
_KIND_BY_SERVER = {
    "c.us": IdKind.PHONE,
    "s.whatsapp.net": IdKind.PHONE,
    "hosted": IdKind.PHONE,
    "lid": IdKind.LID,
    "hosted.lid": IdKind.LID,
    "g.us": IdKind.GROUP,
    "newsletter": IdKind.NEWSLETTER,
    "broadcast": IdKind.BROADCAST,
}
_MAX_ID = 256
_BSUID = re.compile(r"[A-Za-z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)
_DEVICE = re.compile(r"(?:_\d{1,5})?(?::\d{1,5})?\Z", re.ASCII)
_DIGITS = re.compile(r"[0-9]{5,20}")


def identity_of_whatsapp_id(jid: str | None) -> WhatsAppId:
    """Take an id apart; never raises.

    Any digits before `@c.us` or `@s.whatsapp.net`, and bare digits (the Cloud
    API's `wa_id`), are a phone, even where numbering plans say no such number
    exists: strictness is for imports, and an opt-out must never be lost to it.
    """
    text = "" if jid is None or len(jid) > _MAX_ID else jid.strip()
    if not text:
        return WhatsAppId(IdKind.UNKNOWN if jid and len(jid) > _MAX_ID else IdKind.EMPTY, "")
    if "@" not in text:
        return _bare(text)
    user, _, server = text.rpartition("@")
    kind = _KIND_BY_SERVER.get(server.lower(), IdKind.UNKNOWN)
    if kind in (IdKind.PHONE, IdKind.LID):
        user = _DEVICE.sub("", user, count=1)
    if not user and kind is not IdKind.UNKNOWN:
        return WhatsAppId(IdKind.EMPTY, "")
    if kind is IdKind.PHONE:
        return _phone(user)
    if kind is IdKind.BROADCAST and user.lower() == "status":
        kind = IdKind.STATUS
    return WhatsAppId(kind, user)


def is_bsuid(text: str) -> bool:
    """Whether the text is a business-scoped user id (`BR.1000…`, `BR.ENT.…`)."""
    return len(text) <= _MAX_ID and _BSUID.fullmatch(text) is not None


def _bare(text: str) -> WhatsAppId:
    if is_bsuid(text):
        return WhatsAppId(IdKind.BSUID, text)
    if text == "0":
        return WhatsAppId(IdKind.SYSTEM, text)
    return _phone(text.removeprefix("+"))


def _phone(user: str) -> WhatsAppId:
    if user.strip("0") == "" and user:
        return WhatsAppId(IdKind.SYSTEM, user)
    if not _DIGITS.fullmatch(user):
        return WhatsAppId(IdKind.UNKNOWN, user)
    return WhatsAppId(IdKind.PHONE, user, canonical(user), variants_of(user))
