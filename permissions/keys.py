"""The form of an API key: ``cbk_<id of 8, [a-z0-9]>_<secret of 43>``."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from dataclasses import dataclass, field

_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH = 8
_SECRET_BYTES = 32
# By position, since the secret may hold underscores and hyphens itself.
_FORM = re.compile(r"cbk_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. ``plain`` is shown once; the other two are stored."""

    public_id: str
    plain: str = field(repr=False)

    @property
    def digest(self) -> str:
        return digest(self.plain)


def new() -> NewKey:
    """A key of 256 random bits."""
    return renewed("".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH)))


def renewed(public_id: str) -> NewKey:
    """Another secret for a key that keeps its public id."""
    return NewKey(public_id, f"cbk_{public_id}_{secrets.token_urlsafe(_SECRET_BYTES)}")


def digest(plain: str) -> str:
    """SHA-256 of the whole key, 64 hex digits. The secret is random, so no slow hash is needed."""
    return hashlib.sha256(plain.encode()).hexdigest()


def public_id_of(plain: str) -> str | None:
    """The key's public id; None where the text has not the form of a key."""
    match = _FORM.fullmatch(plain)
    return match[1] if match else None
