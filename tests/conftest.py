"""What every test has."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """The real hasher takes a third of a second for each person."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def no_flood(settings: Settings) -> None:
    """The bad keys of all tests come from one address."""
    settings.API_BAD_KEYS_PER_MINUTE = 1_000_000
