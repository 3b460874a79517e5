"""Each request has an id; a slash form is served; what reaches no view is answered in JSON."""

from __future__ import annotations

import logging

import pytest
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from permissions.api import fallbacks
from permissions.logs import RedactingFilter, request_id
from permissions.middleware import RequestIdMiddleware, TrailingSlashMiddleware
from tests.permissions.conftest import NOTES, Caller, error

MADE = r"[0-9a-f]{32}"


@pytest.mark.parametrize("given", ["12345678", "a" * 64, "0b8c8e0a-7d1f-4f6e-9c38-0123456789ab"])
def test_a_good_id_is_taken(caller: Caller, given: str) -> None:
    assert caller.post({}, X_Request_Id=given)["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "1234567", "a" * 65, "abc defgh", "abcdefgh\n", "ábcdefgh", "abc_defgh"])
def test_another_is_made_where_it_is_not(given: str) -> None:
    request = RequestFactory().get("/", headers={"X-Request-Id": given})
    first = RequestIdMiddleware(lambda _request: HttpResponse())(request)["X-Request-Id"]
    second = RequestIdMiddleware(lambda _request: HttpResponse())(request)["X-Request-Id"]

    assert first != given
    assert first != second
    assert len(first) == 32


def test_lines_of_the_log_name_the_request() -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, "olá", (), None)

    def view(_request: HttpRequest) -> HttpResponse:
        RedactingFilter().filter(record)
        return HttpResponse(request_id.get())

    response = RequestIdMiddleware(view)(RequestFactory().get("/", headers={"X-Request-Id": "pedido-0001"}))

    assert isinstance(response, HttpResponse)
    assert response.content == b"pedido-0001"
    assert record.__dict__["request_id"] == "pedido-0001"


@pytest.mark.usefixtures("notes_api")
@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/nothing/", "/api/", "/webhooks/nothing", "/elsewhere"])
def test_every_answer_carries_the_id(client: Client, path: str) -> None:
    assert client.get(path).has_header("X-Request-Id")


def test_a_slash_changes_nothing(caller: Caller) -> None:
    with_slash, without = (caller.post({"name": name}, path) for name, path in (("a", f"{NOTES}/"), ("b", NOTES)))

    assert (with_slash.status_code, without.status_code) == (201, 201)


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/api/v1/notes/", "/api/v1/notes"),
        ("/api/v1/notes//", "/api/v1/notes/"),
        ("/webhooks/whatsapp-status/", "/webhooks/whatsapp-status"),
        ("/api/", "/api"),
        ("/admin/", "/admin/"),
        ("/apix/", "/apix/"),
    ],
)
def test_only_the_api_loses_its_slash(path: str, seen: str) -> None:
    request = RequestFactory().post(path)
    TrailingSlashMiddleware(lambda _request: HttpResponse())(request)

    assert (request.path_info, request.path) == (seen, seen)


@pytest.mark.usefixtures("notes_api")
@pytest.mark.parametrize("path", ["/api/v1/nothing", "/webhooks/nothing"])
def test_nothing_there_is_json(client: Client, path: str) -> None:
    assert error(client.post(path, b"{", content_type="application/json")) == (404, "not_found", None)


@pytest.mark.usefixtures("notes_api")
def test_elsewhere_the_pages_are_html(client: Client) -> None:
    assert client.get("/nothing")["Content-Type"].startswith("text/html")


@pytest.mark.usefixtures("notes_api")
def test_a_strange_host_is_a_bad_request(client: Client) -> None:
    assert error(client.get("/api/v1/notes", headers={"Host": "a b"})) == (400, "parse_error", None)


@pytest.mark.parametrize(
    ("path", "is_json"), [("/api/v1/x", True), ("/webhooks/x", True), ("/admin/", False), ("/", False)]
)
def test_each_page_of_last_resort_has_both_faces(path: str, is_json: bool) -> None:
    request = RequestFactory().get(path)
    answers = [
        (fallbacks.bad_request(request, ValueError()), 400),
        (fallbacks.permission_denied(request, ValueError()), 403),
        (fallbacks.page_not_found(request, ValueError()), 404),
        (fallbacks.csrf_failure(request, "reason"), 403),
        (fallbacks.server_error(request), 500),
    ]

    for response, status in answers:
        assert response.status_code == status
        assert (response["Content-Type"] == "application/json") is is_json


def test_errors_are_json_in_debug_too(caller: Caller, settings: LazySettings) -> None:
    settings.DEBUG = True

    assert error(caller.post({"name": "erro"})) == (500, "error", None)
