"""Whatever is posted, the answer is a 4xx that says in a stable word what is wrong."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError, ValidationError

from permissions.api.parsers import loads
from permissions.models import Team
from tests.permissions.conftest import NOTES, Caller, error


@pytest.mark.parametrize(
    "body",
    [
        "{",
        '{"name": }',
        '{"name": "a",}',
        "{'name': 'a'}",
        '{"name": "a"} x',
        '{"name": "a\nb"}',
        '{"size": NaN}',
        '{"size": Infinity}',
        '{"size": -Infinity}',
        '{"size": 1e999}',
        '{"size": ' + "9" * 5000 + "}",
        b'{"name": "\xff"}',
        b'\xef\xbb\xbf{"name": "a"}',
        '{"name": "a"}'.encode("utf-16"),
        "\x00",
    ],
)
def test_what_is_no_json_cannot_be_parsed(caller: Caller, body: str | bytes) -> None:
    assert error(caller.post(body)) == (400, "parse_error", None)


@pytest.mark.parametrize(
    ("body", "code", "attr"),
    [
        ("{}", "required", "name"),
        ("", "required", "name"),
        ("null", "null", "non_field_errors"),
        ("[]", "invalid", "non_field_errors"),
        ('"name"', "invalid", "non_field_errors"),
        ("7", "invalid", "non_field_errors"),
        ("true", "invalid", "non_field_errors"),
        ('{"name": null}', "null", "name"),
        ('{"name": 7}', "invalid", "name"),
        ('{"name": true}', "invalid", "name"),
        ('{"name": ["a"]}', "invalid", "name"),
        ('{"name": {"a": 1}}', "invalid", "name"),
        ('{"name": "a", "nome": "b"}', "unknown_field", "nome"),
        ('{"name": "a", "id": "team_1"}', "unknown_field", "id"),
        ('{"name": "a", "size": "7"}', "invalid", "size"),
        ('{"name": "a", "size": 7.0}', "invalid", "size"),
        ('{"name": "a", "size": true}', "invalid", "size"),
        ('{"name": "a", "loud": "true"}', "invalid", "loud"),
        ('{"name": "a", "loud": 1}', "invalid", "loud"),
        ('{"name": "a", "at": 1764604800}', "invalid", "at"),
        ('{"name": "a", "at": "2026-12-01T09:00:00"}', "invalid", "at"),
        ('{"name": "a", "at": "amanhã"}', "invalid", "at"),
        ('{"name": "a", "at": "2026-13-41T09:00:00Z"}', "invalid", "at"),
        ('{"name": "a", "at": "0001-01-01T00:00:00+23:59"}', "overflow", "at"),
        ('{"name": "a", "team_id": "grp_0199"}', "invalid_id", "team_id"),
        ('{"name": "a", "team_id": 7}', "invalid_id", "team_id"),
        ('{"name": "a", "kind": "c"}', "invalid_choice", "kind"),
        ('{"name": "a", "kind": ["a"]}', "invalid_choice", "kind"),
        ('{"name": "a", "variables": []}', "not_a_dict", "variables"),
        ('{"name": "a", "variables": {"curso": 1}}', "invalid", "variables.curso"),
        ('{"name": "a", "variables": {"curso": {"a": {}}}}', "invalid", "variables.curso"),
        ('{"name": "a", "variations": {}}', "not_a_list", "variations"),
        ('{"name": "a", "variations": "oi"}', "not_a_list", "variations"),
        ('{"name": "a", "variations": ["oi", 7]}', "invalid", "variations.1"),
        ('{"name": "a", "name": "b"}', "duplicate_field", "name"),
        ('{"name": "a\\u0000"}', "null_characters_not_allowed", "name"),
        ('{"name": "a", "variables": {"x": "\\u0000"}}', "null_characters_not_allowed", "variables.x"),
        ('{"name": "a", "variations": ["a", "\\ud83d"]}', "surrogate_characters_not_allowed", "variations.1"),
        ('{"name": "a", "\\udc00": 1}', "surrogate_characters_not_allowed", "?"),
        ('{"name": "a", "extra": ' + "[" * 50 + "]" * 50 + "}", "nesting_too_deep", None),
        ('{"name": ' + "[" * 100 + '"a"', "nesting_too_deep", None),
        ("[" * 500_000, "nesting_too_deep", None),
        ('{"a":' * 100_000, "nesting_too_deep", None),
    ],
)
def test_another_shape_names_its_field(caller: Caller, body: str, code: str, attr: str | None) -> None:
    assert error(caller.post(body)) == (400, code, attr)
    assert not Team.objects.of(caller.key.organization).exists()


@pytest.mark.parametrize(
    ("fields", "code", "attr"),
    [
        ({"name": "a" * 121}, "max_length", "name"),
        ({"name": "  "}, "blank", "name"),
        ({"name": "a", "size": 0}, "min_value", "size"),
        ({"name": "a", "size": 2**63}, "max_value", "size"),
        ({"name": "a", "variations": ["oi"] * 6}, "max_length", "variations"),
        ({"name": "regra"}, "against_a_rule", "name"),
    ],
)
def test_a_rule_refuses_what_was_read(caller: Caller, fields: dict[str, Any], code: str, attr: str) -> None:
    response = caller.post(fields)

    assert error(response) == (422, code, attr)
    assert response.json()["type"] == "validation_error"


def test_a_shape_error_beside_a_rule_is_a_400(caller: Caller) -> None:
    response = caller.post({"name": "a" * 121, "nome": 1})

    assert response.status_code == 400
    assert {problem["code"] for problem in response.json()["errors"]} == {"max_length", "unknown_field"}


def test_several_rules_are_told_at_once(caller: Caller) -> None:
    response = caller.post({"name": "regras"})

    assert response.status_code == 422
    assert [(problem["code"], problem["attr"]) for problem in response.json()["errors"]] == [
        ("one", "variations.2"),
        ("two", None),
    ]


def test_nesting_of_fifty_is_read(caller: Caller) -> None:
    body = '{"name": "a", "extra": ' + "[" * 49 + "]" * 49 + "}"

    assert error(caller.post(body)) == (400, "unknown_field", "extra")


def test_brackets_in_a_string_are_no_nesting(caller: Caller) -> None:
    assert caller.post({"name": '[{"' * 30 + "\\"}).status_code == 201


@pytest.mark.parametrize("unit", ["[],", '"', '\\"', '"\\', '{"a":1},', "\\", '["\\"', "]", '"a" '])
def test_a_megabyte_is_read_in_the_time_of_a_megabyte(unit: str) -> None:
    started = time.thread_time()
    with pytest.raises((ParseError, ValidationError)):
        loads(("[" + unit * (1024 * 1024 // len(unit)))[: 1024 * 1024].encode())

    assert time.thread_time() - started < 5


def test_a_long_name_over_many_values_takes_no_more_room_than_it_has() -> None:
    body = json.dumps({"n" * 400_000: {f"{number:x}": 1 for number in range(40_000)}})

    tracemalloc.start()
    try:
        loads(body.encode())
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100 * 1024 * 1024


def test_emoji_and_newlines_are_no_trouble(caller: Caller) -> None:
    assert caller.post('{"name": "\\ud83d\\ude00 olá\\n"}').json()["name"] == "😀 olá"


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
    ],
)
def test_what_is_not_json_is_an_unsupported_type(caller: Caller, content_type: str) -> None:
    response = caller.post(b"name=a", content_type=content_type)

    assert error(response) == (415, "unsupported_media_type", None)


def test_a_charset_that_unpacks_is_no_charset(caller: Caller) -> None:
    response = caller.request("POST", data=b"BZh", content_type="application/json; charset=bz2_codec")

    assert error(response) == (415, "unsupported_media_type", None)


def test_a_charset_of_utf8_is_fine(caller: Caller) -> None:
    assert caller.post({"name": "a"}, content_type="application/json; charset=UTF-8").status_code == 201


def test_a_body_over_the_limit_is_not_read(caller: Caller) -> None:
    garbage = random.Random(1).randbytes(1024 * 1024 + 1)

    assert error(caller.post(garbage)) == (413, "request_too_large", None)
    assert error(caller.post(garbage[:-1])) == (400, "parse_error", None)


def test_a_view_may_read_less(caller: Caller) -> None:
    caller.key.__class__.unscoped.update(scopes=["channels:manage"])

    def delete(body: str) -> Any:
        return caller.request("DELETE", f"{NOTES}/1", data=body, content_type="application/json")

    assert delete("12345678").json() == {"given": 12345678}
    assert error(delete("12345678901")) == (413, "request_too_large", None)


def test_a_body_says_its_length(caller: Caller) -> None:
    response = caller.request("POST", data=b"", content_type="application/json", HTTP_TRANSFER_ENCODING="chunked")

    assert error(response) == (411, "length_required", None)


def test_an_answer_stays_short_whatever_was_sent(caller: Caller) -> None:
    names = {f"campo-{number}": 1 for number in range(20_000)}

    response = caller.post({"name": "a", "n" * 500_000: 1} | names)

    assert response.status_code == 400
    assert len(response.content) < 20_000


def test_details_do_not_repeat_what_was_sent(caller: Caller) -> None:
    for fields in ({"name": "a", "kind": "+5511999990001"}, {"name": "a", "at": "+5511999990001"}):
        assert "99999" not in caller.post(fields).content.decode()


def test_an_error_of_ours_tells_nothing(caller: Caller) -> None:
    response = caller.post({"name": "erro"})

    assert error(response) == (500, "error", None)
    assert response.json()["type"] == "server_error"
    assert "Ana" not in response.content.decode()


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
_fields = st.sampled_from(["name", "size", "loud", "at", "team_id", "kind", "variables", "variations", "other"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(_fields, _values, max_size=6) | _values)
def test_no_json_is_an_error_of_ours(caller: Caller, body: Any) -> None:
    response = caller.post(json.dumps(body))

    assert response.status_code in {201, 400, 422}
    assert response.status_code == 201 or response.json()["errors"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300))
def test_no_bytes_are_an_error_of_ours(caller: Caller, body: bytes) -> None:
    assert 400 <= caller.post(body).status_code < 500
