"""Secrets at rest: encrypted with a key of the environment, decrypted only where they are used."""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    TextField = models.TextField[str, str]
else:
    TextField = models.TextField


class SecretUnreadable(Exception):
    """None of the keys in FIELD_ENCRYPTION_KEYS opens this secret."""


def _fernet() -> MultiFernet:
    return _fernet_of(tuple(settings.FIELD_ENCRYPTION_KEYS))


@functools.lru_cache(maxsize=4)
def _fernet_of(passphrases: tuple[str, ...]) -> MultiFernet:
    """Made once: a webhook opens two secrets before it is believed."""
    # A passphrase of any length becomes a Fernet key; the first one encrypts, all decrypt: so they rotate.
    digests = (hashlib.sha256(key.encode()).digest() for key in passphrases)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])


def encrypt(plain: str) -> str:
    """Plain text → a Fernet token."""
    return _fernet().encrypt(plain.encode()).decode("ascii")


def decrypt(token: str) -> str:
    """A Fernet token → plain text; raises SecretUnreadable."""
    try:
        return _fernet().decrypt(token.encode("ascii")).decode()
    except InvalidToken as error:
        raise SecretUnreadable(SecretUnreadable.__doc__) from error


class EncryptedTextField(TextField):
    """A text that the database never sees in the clear. The empty string stays empty."""

    def get_prep_value(self, value: Any) -> Any:
        return encrypt(value) if value else value

    def from_db_value(self, value: str | None, *_source: object) -> str | None:
        return decrypt(value) if value else value
