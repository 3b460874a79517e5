"""Schemathesis: whatever the schema allows, and whatever it forbids, is answered as the schema says.

``FUZZ_CASES`` is how many requests there are in all: 2,400 by ``make fuzz`` and in CI (a minute of one core), few
otherwise. Only with it are they drawn anew each time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.conf import LazySettings
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks as openapi

from permissions import ids
from permissions.models import ApiKey, Membership, Scope
from tests.broadcasts.conftest import TEXTS, Shop, new_shop
from tests.conformance import document

CASES = int(os.environ.get("FUZZ_CASES", "400"))
POSITIVE, NEGATIVE = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
# What takes nothing has nothing that is forbidden.
OPERATIONS = [
    (method, path, mode)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
    for mode in (POSITIVE, NEGATIVE)
    if path.startswith("/api/") and (mode is POSITIVE or {"parameters", "requestBody"} & operation.keys())
]
CHECKS = [
    checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_headers_conformance,
    openapi.response_schema_conformance,
]


@pytest.fixture
def one_connection() -> Iterator[None]:
    """A request ends no connection: the test's transaction is on it. Django's own client does the same."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def known(db: None, settings: LazySettings, one_connection: None) -> Shop:
    """A shop whose key may do everything, with broadcasts in several states."""
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    shop = new_shop()
    shop.add_people(3)
    Membership.objects.of(shop.organization).update(role=Membership.Role.ADMIN)
    shop.key.scopes = list(Scope)
    ApiKey.objects.of(shop.organization).update(scopes=list(Scope))
    return shop


def replaced(case: Any, known: Shop, names: list[str], draw: Callable[[Any], Any]) -> None:
    """Put things that exist where chance would never find them."""
    if "reference" in (case.path_parameters or {}) and draw(st.booleans()):
        case.path_parameters["reference"] = draw(st.sampled_from(names))
    if isinstance(case.body, dict) and "group_id" in case.body:
        if draw(st.booleans()):
            case.body["group_id"] = known.group.external_id
        if draw(st.booleans()):
            case.body["variations"] = list(TEXTS)
            case.body.pop("template_name", None)


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path", "mode"), OPERATIONS, ids=lambda part: getattr(part, "value", part))
def test_every_answer_is_as_the_schema_says(known: Shop, method: str, path: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(document())
    schema.app = get_wsgi_application()
    operation = schema[path][method]
    names = [ids.encode(ids.BROADCAST, known.compose().pk), known.launched().public_id]
    made: list[int] = []
    wanted = math.ceil(CASES / len(OPERATIONS))

    @settings(
        max_examples=wanted,
        deadline=None,
        database=None,
        derandomize="FUZZ_CASES" not in os.environ,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def run(case: Any, data: Any) -> None:
        if mode is POSITIVE:
            replaced(case, known, names, data.draw)
        headers = {"Authorization": f"Bearer {known.key.plain}"}  # type: ignore[attr-defined]
        response = case.call(headers=headers)
        refused = [] if mode is POSITIVE else [openapi.negative_data_rejection]
        case.validate_response(response, checks=[*CHECKS, *refused])
        made.append(response.status_code)

    run()
    takes_nothing = not {"parameters", "requestBody"} & document()["paths"][path][method].keys()
    assert takes_nothing or len(made) >= wanted
