"""The image and docker-compose.yml run what `make run` runs."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from broadcast_project.supervisor import Process, product, pulse
from tests.services.conftest import ROOT

_TEXT = (ROOT / "docker-compose.yml").read_text()
# Anchors and merges included, as Docker reads them.
_COMPOSE: dict[str, Any] = yaml.safe_load(_TEXT)
_SERVICES: dict[str, dict[str, Any]] = _COMPOSE["services"]
_PROCESSES = {process.name: process for process in product.processes(8000, host="0.0.0.0")}
_OURS = ["migrate", *_PROCESSES]


def _in_the_image(process: Process) -> list[str]:
    return ["python", *(part.removeprefix(f"{ROOT}/") for part in process.command[1:])]


@pytest.mark.parametrize("name", _PROCESSES)
def test_compose_runs_the_same_command(name: str) -> None:
    assert _SERVICES[name]["command"] == _in_the_image(_PROCESSES[name])


@pytest.mark.parametrize("name", _PROCESSES)
def test_compose_gives_it_the_same_environment(name: str) -> None:
    given = dict(_PROCESSES[name].env)
    # The image sets it for all.
    assert f" PYTHONUNBUFFERED={given.pop('PYTHONUNBUFFERED')} " in _dockerfile()
    assert given.items() <= _SERVICES[name]["environment"].items()


@pytest.mark.parametrize("name", _OURS)
def test_compose_builds_all_on_one_image(name: str) -> None:
    assert _SERVICES[name]["image"] == _COMPOSE["x-app"]["image"]
    assert _SERVICES[name]["cap_drop"] == ["ALL"]


def test_the_image_serves_web_by_default() -> None:
    command = re.search(r"^CMD (\[.*\])$", _dockerfile(), re.MULTILINE)
    assert command is not None
    assert json.loads(command[1]) == _in_the_image(_PROCESSES["web"])


def test_the_image_runs_as_nobody_of_note() -> None:
    *_, user = re.findall(r"^USER (\S+)$", _dockerfile(), re.MULTILINE)
    assert user.split(":")[0].isdecimal()
    assert user.split(":")[0] != "0"


@pytest.mark.parametrize("name", ["postgres", "redis", "waha", *_PROCESSES])
def test_every_lasting_service_is_checked(name: str) -> None:
    assert _SERVICES[name]["healthcheck"]["test"]


@pytest.mark.parametrize("name", ["worker", "dispatcher", "beat"])
def test_a_silent_process_is_ended_by_its_check_and_started_again(name: str) -> None:
    service, process = _SERVICES[name], _PROCESSES[name]
    *program, patience = service["healthcheck"]["test"]
    assert program == ["CMD", "python", "-m", pulse.__name__]
    assert float(patience) == process.patience
    assert service["restart"] == "unless-stopped"
    assert service["environment"][pulse.VARIABLE]


def test_a_stop_leaves_time_for_what_is_being_sent() -> None:
    for name in _OURS:
        # A send may take 20 s, and its settle wait 15 s for a database that is away.
        assert int(_SERVICES[name]["stop_grace_period"].removesuffix("s")) >= 40


def test_a_service_waits_for_services_that_exist_and_are_checked() -> None:
    for name, service in _SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in _SERVICES, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in _SERVICES[other], name


def test_named_volumes_are_declared() -> None:
    used = {volume.split(":")[0] for service in _SERVICES.values() for volume in service.get("volumes", [])}
    assert used == _COMPOSE["volumes"].keys()


def test_only_web_is_reached_from_outside_and_only_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in _SERVICES.items() if "ports" in service}
    assert ports.keys() == {"web"}
    assert all(port.startswith("127.0.0.1:") for port in ports["web"])


@pytest.mark.parametrize("name", _OURS)
def test_settings_that_compose_passes_are_read(name: str) -> None:
    """A misspelt variable would be no error of Docker's, nor of ours."""
    explained = set(re.findall(r"(?m)^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text()))
    assert _SERVICES[name]["environment"].keys() <= explained | {pulse.VARIABLE}


def test_commands_that_compose_runs_exist() -> None:
    known = subprocess.run(
        [sys.executable, "manage.py", "help", "--commands"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    for name in _OURS:
        command = _SERVICES[name]["command"]
        if command[1] == "manage.py":
            assert command[2] in known
        else:
            assert command[:2] == ["python", "-m"]
            assert importlib.util.find_spec(command[2]) is not None


def test_secrets_come_from_outside() -> None:
    for variable in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "WAHA_API_KEY"):
        assert re.search(rf"\${{{variable}:\?", _TEXT)
    for service in _SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY|AUTH", name):
                assert str(value).startswith("${"), name


def _dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()
