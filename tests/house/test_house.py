"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.db import models

from messaging import doorbell
from messaging.faults import Point
from messaging.models import Lane
from permissions.management.base import OperatorCommand
from permissions.managers import TenantManager

ROOT = Path(__file__).resolve().parents[2]
# From the lowest room to the highest.
ROOMS = ("permissions", "events", "audience", "messaging", "channels_waha", "broadcasts")
# Siblings do not know each other either.
ABOVE = {room: ROOMS[place + 1 :] for place, room in enumerate(ROOMS)} | {"broadcasts": ("channels_waha",)}


def sources(*rooms: str) -> Iterator[tuple[Path, str]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path, path.read_text()


def strings(source: str) -> Iterator[str]:
    """Every string literal that is no docstring."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("room", ROOMS)
def test_sql_names_no_table_of_a_higher_room(room: str) -> None:
    tables = {model._meta.db_table for other in ABOVE[room] for model in apps.get_app_config(other).get_models()}
    after_a_keyword = re.compile(r"(?i)\b(?:from|join|into|update|using)\s+\"?(\w+)")
    for path, source in sources(room):
        for text in strings(source):
            assert tables.isdisjoint(after_a_keyword.findall(text)), path
    for path in (ROOT / room).rglob("*.sql"):
        assert tables.isdisjoint(after_a_keyword.findall(path.read_text())), path


def test_lanes_are_written_by_messagings_statements_alone() -> None:
    write = re.compile(r"(?i)\b(?:insert into|update|delete from)\s+lanes\b")
    for path, source in sources(*ROOMS, "broadcast_project"):
        allowed = path.parent.name == "messaging"
        assert allowed or not write.search(source), path
        assert not re.search(r"\bLane\((?!models)", source), path
    with pytest.raises(TypeError):
        Lane().save()


def test_every_named_fault_point_is_reached_in_the_code() -> None:
    code = "\n".join(source for path, source in sources(*ROOMS, "broadcast_project") if path.name != "faults.py")
    assert [point.name for point in Point if f"Point.{point.name}" not in code] == []


def test_every_row_of_a_tenant_has_the_managers_that_ask_whose_it_is() -> None:
    # Written by statements and appliers alone; an organization may be unknown, or the row is the engine's.
    without = {"Event", "Lane", "WebhookEvent"}
    for room in ROOMS:
        for model in apps.get_app_config(room).get_models():
            names = {field.name for field in model._meta.get_fields() if isinstance(field, models.ForeignKey)}
            if "organization" in names and model.__name__ not in without:
                assert isinstance(model._meta.managers_map["objects"], TenantManager), model
                assert model._meta.default_manager_name == "unscoped", model


def test_every_command_of_the_operator_has_a_scope() -> None:
    # Of no tenant: it reads a number.
    without = {"phone_check"}
    for name, app in get_commands().items():
        if app in ROOMS and name not in without:
            assert isinstance(load_command_class(app, name), OperatorCommand), name


def test_no_http_call_stands_outside_a_client() -> None:
    for path, source in sources(*ROOMS):
        imports = re.search(r"(?m)^(?:import|from) (?:requests|urllib3|httpx|http\.client|urllib\.request)\b", source)
        assert imports is None or path.name == "client.py" or path.parent.name == "client", path


def test_no_task_waits() -> None:
    """B122: an ETA beyond the visibility timeout runs once for each worker. What waits is a time on a row; a second's
    gathering of rings is no wait."""
    waits = re.compile(r"\b(?:countdown|eta)\s*=\s*([\w.]+)")
    found = [value for _path, source in sources(*ROOMS, "broadcast_project") for value in waits.findall(source)]
    assert set(found) <= {"_GATHER_SECONDS"}
    assert doorbell._GATHER_SECONDS <= 1
