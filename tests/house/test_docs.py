"""docs/api.md names every code, scope, role and header that there is, and none that there is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from permissions import roles
from permissions.api import idempotency, pagination, throttling
from permissions.models import Membership, Scope
from tests.conformance import document

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()


def table(head: str) -> dict[str, list[str]]:
    """The rows under a table's first head cell: first cell → the others."""
    lines = DOCS[DOCS.index(f"| {head} |") :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def refusals() -> Iterator[tuple[str, str]]:
    """Status and code of everything that an operation may refuse."""
    for methods in document()["paths"].values():
        for operation in methods.values():
            for status, said in operation["responses"].items():
                name = said.get("$ref", "").rpartition("/")[2]
                for content in document()["components"]["responses"].get(name, said).get("content", {}).values():
                    for part in content["schema"].get("allOf", [{}])[1:]:
                        codes = part["properties"]["errors"]["items"]["properties"]["code"]["enum"]
                        yield from ((status, code) for code in codes)


def enum(shape: str, field: str) -> set[str]:
    found: list[Any] = document()["components"]["schemas"][shape]["properties"][field]["enum"]
    return {code for code in found if code is not None}


def test_every_code_of_the_schema_is_explained_and_no_other() -> None:
    rows = table("code")
    said = {code for _status, code in refusals()}

    # 405 is of a path, and the schema speaks of methods that there are.
    assert set(rows) == said | {"method_not_allowed"}
    for code, (status, meaning) in rows.items():
        assert meaning
        assert code == "method_not_allowed" or (status, code) in set(refusals()), code


@pytest.mark.parametrize(
    ("head", "shape", "field"),
    [
        ("`exclusion`", "Person", "exclusion"),
        ("`error_code`", "Person", "error_code"),
        ("`waiting_for.code`", "Waiting", "code"),
    ],
)
def test_every_closed_list_is_explained(head: str, shape: str, field: str) -> None:
    assert set(table(head)) == enum(shape, field)


def test_scopes_and_roles_are_those_of_the_code() -> None:
    assert set(table("scope")) == set(Scope.values)
    rows = table("role")
    assert set(rows) == set(Membership.Role.values)
    for role, (scopes,) in rows.items():
        named = set(Scope.values) if scopes == "all" else set(re.findall(r"`([a-z:]+)`", scopes))
        assert named == {str(scope) for scope in roles.scopes_of(role)}, role


def test_every_header_is_named() -> None:
    headers = set(document()["components"]["headers"]) - {"Location", "Content-Disposition", "WWW-Authenticate"}
    for name in (*headers, idempotency.HEADER, "X-Organization", "X-CSRFToken"):
        assert name in DOCS, name


def test_the_numbers_are_those_of_the_code() -> None:
    hours = int(idempotency.KEPT_FOR.total_seconds() // 3600)
    assert f"{settings.API_REQUESTS_PER_MINUTE} requests a minute" in DOCS
    assert throttling.WINDOW_SECONDS == 60
    assert f"{hours} hours" in DOCS
    assert f"1 to {pagination.MAX_LIMIT}, {pagination.DEFAULT_LIMIT} if not given" in DOCS
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE == 1024 * 1024
