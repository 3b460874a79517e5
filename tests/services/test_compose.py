"""The image and docker-compose.yml run what `make run` runs."""

from __future__ import annotations

import json
import re

import pytest

from broadcast_project.supervisor import Process, product
from tests.services.conftest import ROOT

_COMPOSE = (ROOT / "docker-compose.yml").read_text()
_PROCESSES = {process.name: process for process in product.processes(8000, host="0.0.0.0")}


def _in_the_image(process: Process) -> list[str]:
    return ["python", *(part.removeprefix(f"{ROOT}/") for part in process.command[1:])]


def _service(name: str) -> str:
    found = re.search(rf"^  {name}:\n((?:    .*\n|\n)+)", _COMPOSE, re.MULTILINE)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", _PROCESSES)
def test_compose_runs_the_same_command(name: str) -> None:
    command = re.search(r"^    command: (\[.*\])$", _service(name), re.MULTILINE)
    assert command is not None
    assert json.loads(command[1]) == _in_the_image(_PROCESSES[name])


@pytest.mark.parametrize("name", ["migrate", *_PROCESSES])
def test_compose_builds_all_on_one_image(name: str) -> None:
    assert "<<: *app" in _service(name)


def test_the_image_serves_web_by_default() -> None:
    command = re.search(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert command is not None
    assert json.loads(command[1]) == _in_the_image(_PROCESSES["web"])


@pytest.mark.parametrize("name", ["postgres", "redis", "waha", "web", "worker"])
def test_services_that_others_wait_for_are_checked(name: str) -> None:
    assert "healthcheck:" in _service(name)


def test_secrets_come_from_outside() -> None:
    for variable in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "WAHA_API_KEY"):
        assert re.search(rf"\${{{variable}:\?", _COMPOSE)
