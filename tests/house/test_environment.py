"""Each setting of the environment is documented, typed, and fails by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = (ROOT / "broadcast_project" / "settings.py").read_text()
READERS = r"(?:environment\.\w+|_kept_secret)\(\s*\"([A-Z_]+)\""


def load(**environment: str) -> subprocess.CompletedProcess[str]:
    """Import the settings in a process of its own, under this environment alone."""
    keep = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    given = {"DATABASE_URL": "postgres://u:p@db/x", "SECRET_KEY": "s" * 60, "FIELD_ENCRYPTION_KEYS": "k" * 60}
    return subprocess.run(
        [sys.executable, "-c", "import broadcast_project.settings"],
        cwd=ROOT,
        env=keep | {"REDIS_URL": "redis://broker/0"} | given | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_variable_is_explained_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text()
    read = set(re.findall(READERS, SETTINGS))
    # What the supervisor and docker compose read beside the settings.
    compose = (ROOT / "docker-compose.yml").read_text()
    read |= {"HOST", *re.findall(r"\$\{([A-Z_]+)[:}]", compose)}
    explained = set(re.findall(r"(?m)^#? ?([A-Z_]+)=", example))
    assert read == explained
    for name in explained:
        before = example[: re.search(rf"(?m)^#? ?{name}=", example).start()].rstrip().splitlines()[-1]  # type: ignore[union-attr]
        assert before.startswith("#"), f"{name} has no word of explanation"


def test_a_whole_environment_loads() -> None:
    assert load().returncode == 0


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY"),
        ({"FIELD_ENCRYPTION_KEYS": " "}, "FIELD_ENCRYPTION_KEYS"),
        ({"DATABASE_URL": "sqlite:///db.sqlite3"}, "DATABASE_URL"),
        ({"WAHA_BASE_URL": "http://waha:3000"}, "WAHA_API_KEY"),
        ({"WAHA_API_KEY": "k"}, "WAHA_BASE_URL"),
        ({"WAHA_BASE_URL": "waha:3000", "WAHA_API_KEY": "k"}, "WAHA_BASE_URL"),
        ({"PUBLIC_BASE_URL": "broadcast.example"}, "PUBLIC_BASE_URL"),
        ({"SEND_DEADLINE_SECONDS": "0"}, "SEND_DEADLINE_SECONDS"),
        ({"FIELD_ENCRYPTION_KEYS": ","}, "FIELD_ENCRYPTION_KEYS"),
        ({"DATABASE_URL": "garbage"}, "DATABASE_URL"),
        ({"REDIS_URL": "foo"}, "REDIS_URL"),
        ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        ({"SEND_WORKER_RATE": "banana"}, "SEND_WORKER_RATE"),
        ({"SEND_WORKER_RATE": "0/s"}, "SEND_WORKER_RATE"),
        ({"DATABASE_POOL_SIZE": "0"}, "DATABASE_POOL_SIZE"),
        ({"BEAT_SECONDS": "0"}, "BEAT_SECONDS"),
        ({"PORT": "0"}, "PORT"),
        ({"PORT": "65536"}, "PORT"),
        ({"DATABASE_POOL_WAIT_SECONDS": "0"}, "DATABASE_POOL_WAIT_SECONDS"),
        ({"WEBHOOK_RETENTION_DAYS": "0"}, "WEBHOOK_RETENTION_DAYS"),
    ],
)
def test_half_configured_fails_at_start_and_names_the_variable(environment: dict[str, str], name: str) -> None:
    found = load(**environment)
    assert found.returncode != 0
    last = found.stderr.strip().splitlines()[-1]
    assert "ImproperlyConfigured" in last
    assert name in last


@pytest.mark.parametrize(("name", "value"), [("PORT", "http"), ("DEBUG", "maybe"), ("DATABASE_POOL_SIZE", "many")])
def test_a_value_of_the_wrong_type_is_named(name: str, value: str) -> None:
    found = load(**{name: value})
    assert found.returncode != 0
    assert name in found.stderr.strip().splitlines()[-1]
