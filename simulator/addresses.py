"""WhatsApp addresses and message ids, in WAHA's public form and the engine's."""

import zlib


def with_suffix(chat_id: str) -> str:
    """WAHA adds `@c.us` where there is no `@`; it checks nothing else."""
    return chat_id if "@" in chat_id else chat_id + "@c.us"


def to_engine(chat_id: str) -> str:
    """`@c.us` → `@s.whatsapp.net`; lids, groups and the rest stay."""
    return chat_id.removesuffix("@c.us") + "@s.whatsapp.net" if chat_id.endswith("@c.us") else chat_id


def to_public(jid: str) -> str:
    """`5511…:7@s.whatsapp.net` → `5511…@c.us`."""
    user, _, server = jid.partition("@")
    user = user.partition(":")[0]
    return f"{user}@{'c.us' if server == 's.whatsapp.net' else server}"


def is_group(chat_id: str) -> bool:
    return chat_id.endswith("@g.us")


def full_id(*, from_me: bool, chat_id: str, bare: str, participant: str | None = None) -> str:
    """`true_5511…@c.us_3EB0…`, and the participant as a fourth part in groups."""
    base = f"{'true' if from_me else 'false'}_{chat_id}_{bare}"
    return f"{base}_{participant}" if participant else base


def bare_id(message_id: str) -> str:
    """The third part of a full id; a bare one stays."""
    parts = message_id.split("_")
    return parts[2] if len(parts) > 2 else message_id


def lid_of(phone: str) -> str:
    """A hidden id for a phone: always the same, and no phone number itself."""
    return f"{199_900_000_000_000 + zlib.crc32(phone.encode())}@lid"


def phone_of(chat_id: str) -> str:
    return chat_id.partition("@")[0].partition(":")[0]
