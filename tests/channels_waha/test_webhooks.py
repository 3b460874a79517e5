"""The address WAHA posts to: who may, what is kept, and what it comes to."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from channels_waha.models import ChannelSession
from messaging import apply, intake
from messaging.models import Message, WebhookEvent
from tests.channels_waha import recorded
from tests.channels_waha.conftest import database_now, envelope, signed

MakeSession = Callable[..., ChannelSession]
EVENT = {"event": "presence.update", "payload": {}}


@pytest.fixture
def post(client: Client) -> Callable[..., int]:
    def post(session: ChannelSession, event: Any = EVENT, **options: Any) -> int:
        return client.post(**signed(session, event, **options)).status_code

    return post


def apply_all(session: ChannelSession) -> None:
    apply.apply_channel(session.channel_id, now=database_now())


def test_a_signed_delivery_is_kept_byte_for_byte(session: ChannelSession, client: Client) -> None:
    body = b'{"event" :  "message.any", "text": "ol\xc3\xa1 \xf0\x9f\x91\x8d"}'
    answer = client.post(**signed(session, body, Cookie="a=b"))
    assert (answer.status_code, answer.content) == (200, b"")
    stored = WebhookEvent.objects.get()
    assert bytes(stored.body) == body
    assert stored.channel_id == session.channel_id
    assert stored.organization_id == session.organization_id
    assert stored.request_id == "request-1"
    assert "x-webhook-hmac" not in stored.headers
    assert not answer.cookies


def test_nothing_that_people_need_is_done_for_it(session: ChannelSession, client: Client) -> None:
    answer = client.post(**signed(session, EVENT, **{"Accept-Language": "en"}))
    assert answer["X-Request-Id"]
    assert answer["Content-Length"] == "0"
    assert "Content-Language" not in answer
    assert "Vary" not in answer


def test_the_published_vector_is_accepted(session: ChannelSession, client: Client) -> None:
    ChannelSession.unscoped.filter(pk=session.pk).update(webhook_secret="my-secret-key")
    answer = client.post(
        f"/api/v1/webhooks/waha/{session.session_name}",
        data=b'{"event":"message","session":"default","engine":"WEBJS"}',
        content_type="application/json",
        headers={
            "X-Webhook-Hmac": "208f8a55dde9e05519e898b10b89bf0d0b3b0fdf11fdbf09b6b90476301b98d8"
            "097c462b2b17a6ce93b6b47a136cf2e78a33a63f6752c2c1631777076153fa89"
        },
    )
    assert answer.status_code == 200


def test_every_recorded_delivery_is_accepted_as_it_was_signed(make_session: MakeSession, client: Client) -> None:
    session = make_session()
    ChannelSession.unscoped.filter(pk=session.pk).update(session_name="default", webhook_secret="lab-hmac-key")
    for delivery in recorded.deliveries():
        answer = client.post(
            "/api/v1/webhooks/waha/default",
            data=delivery.body,
            content_type="application/json",
            headers=delivery.headers,
        )
        assert answer.status_code == 200, delivery.event
    apply_all(session)
    states = set(WebhookEvent.objects.values_list("state", flat=True))
    assert states == {WebhookEvent.State.APPLIED, WebhookEvent.State.IGNORED}


def test_hex_of_any_case_and_a_slash_at_the_end_are_fine(session: ChannelSession, client: Client) -> None:
    request = signed(session, EVENT)
    request["headers"]["X-Webhook-Hmac"] = request["headers"]["X-Webhook-Hmac"].upper()
    request["path"] += "/"
    assert client.post(**request).status_code == 200


@pytest.mark.parametrize(
    "signature",
    ["", "0" * 128, "g" * 128, "é" * 64, "a" * 100_000, "sha512={right}", "{right}00", "{short}", "{empty key}"],
)
def test_a_wrong_signature_is_refused_and_nothing_is_kept(
    session: ChannelSession, client: Client, signature: str
) -> None:
    request = signed(session, EVENT)
    right = request["headers"]["X-Webhook-Hmac"]
    with_no_key = hmac.new(b"", request["data"], hashlib.sha512).hexdigest()
    given = signature.replace("{right}", right).replace("{short}", right[:-1]).replace("{empty key}", with_no_key)
    request["headers"]["X-Webhook-Hmac"] = given
    answer = client.post(**request)
    assert (answer.status_code, answer.content) == (401, b"")
    assert not WebhookEvent.objects.exists()


def test_no_signature_at_all_is_refused(session: ChannelSession, client: Client) -> None:
    request = signed(session, EVENT)
    del request["headers"]["X-Webhook-Hmac"]
    assert client.post(**request).status_code == 401
    assert not WebhookEvent.objects.exists()


def test_the_body_is_signed_as_it_stands(session: ChannelSession, client: Client) -> None:
    request = signed(session, b'{"a": 1, "b": 2}')
    request["data"] = b'{"b": 2, "a": 1}'
    assert client.post(**request).status_code == 401


@pytest.mark.parametrize("name", ["unknown_1", "x" * 300, "%00", "..", "a b", "é"])
def test_an_unknown_session_answers_like_a_wrong_signature(db: None, client: Client, name: str) -> None:
    answer = client.post(f"/api/v1/webhooks/waha/{name}", data=b"{}", content_type="application/json")
    assert (answer.status_code, answer.content) == (401, b"")
    assert not WebhookEvent.objects.exists()


def test_a_session_without_a_secret_takes_nothing(session: ChannelSession, client: Client) -> None:
    ChannelSession.unscoped.filter(pk=session.pk).update(webhook_secret="", previous_webhook_secret="")
    assert client.post(**signed(session, EVENT, secret="")).status_code == 401


def test_another_sessions_secret_opens_nothing(make_session: MakeSession, post: Callable[..., int]) -> None:
    mine, other = make_session(), make_session()
    assert post(mine, secret=other.webhook_secret) == 401
    assert not WebhookEvent.objects.exists()


def test_while_a_secret_rotates_both_sign(
    session: ChannelSession, post: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = session.webhook_secret
    ChannelSession.unscoped.filter(pk=session.pk).update(webhook_secret="new", previous_webhook_secret=old)
    assert [post(session, secret=secret) for secret in (old, "new", "older")] == [200, 200, 401]
    ChannelSession.unscoped.filter(pk=session.pk).update(previous_webhook_secret="")
    later = time.monotonic() + 5.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert [post(session, secret=secret) for secret in (old, "new")] == [401, 200]


def test_a_new_secret_signs_at_once(session: ChannelSession, post: Callable[..., int]) -> None:
    assert post(session) == 200
    ChannelSession.unscoped.filter(pk=session.pk).update(webhook_secret="new")
    assert post(session, secret="new") == 200


def test_a_body_over_the_cap_is_refused_before_it_is_read(
    session: ChannelSession, client: Client, settings: Settings
) -> None:
    settings.WEBHOOK_MAX_BYTES = 1000
    assert client.post(**signed(session, b"x" * 1000)).status_code == 200
    answer = client.post(**signed(session, b"x" * 1001))
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["code"] == "body_too_large"
    assert WebhookEvent.objects.count() == 1


def test_a_body_above_the_limit_of_forms_is_taken(session: ChannelSession, client: Client) -> None:
    assert client.post(**signed(session, b"x" * 3_000_000)).status_code == 200


def test_other_methods_are_refused(session: ChannelSession, client: Client) -> None:
    assert client.get(f"/api/v1/webhooks/waha/{session.session_name}").status_code == 405


def test_no_csrf_token_is_asked_for(session: ChannelSession) -> None:
    assert Client(enforce_csrf_checks=True).post(**signed(session, EVENT)).status_code == 200


def test_while_the_database_is_away_waha_is_to_try_again(
    session: ChannelSession, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(**_options: Any) -> None:
        raise OperationalError("connection to server failed: segredo")

    monkeypatch.setattr(intake, "store", away)
    answer = client.post(**signed(session, EVENT))
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "segredo" not in caplog.text


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[]", b"{" * 5000, b'{"event":"message.any","payload":null}'])
def test_a_signed_body_that_is_no_event_is_kept_as_an_error(
    session: ChannelSession, post: Callable[..., int], body: bytes
) -> None:
    assert post(session, body) == 200
    apply_all(session)
    stored = WebhookEvent.objects.get()
    assert stored.state == WebhookEvent.State.ERROR
    assert stored.error.startswith("unreadable: ")


def test_a_body_that_speaks_for_another_session_has_no_effect(
    make_session: MakeSession, post: Callable[..., int]
) -> None:
    mine, other = make_session(), make_session()
    status = envelope(other, "session.status", {"name": other.session_name, "status": "WORKING"})
    assert post(mine, status) == 200
    apply_all(mine)
    apply_all(other)
    assert set(ChannelSession.unscoped.values_list("status", flat=True)) == {"STOPPED"}
    assert WebhookEvent.objects.get().state == WebhookEvent.State.ERROR


def test_deliveries_that_come_twice_have_one_effect(session: ChannelSession, post: Callable[..., int]) -> None:
    identifier = "true_5511999990001@c.us_3EB0AAAA"
    own = {"id": identifier, "fromMe": True, "body": "do telefone", "timestamp": 1795962745}
    for _ in range(2):
        post(session, envelope(session, "message.any", own))
    for ack in (3, 3, 2, 1, 3, -1):
        post(session, envelope(session, "message.ack", {"id": identifier, "fromMe": True, "ack": ack}))
    apply_all(session)
    message = Message.unscoped.get()
    assert (message.origin, message.status) == (Message.Origin.EXTERNAL_DEVICE, Message.Status.READ)
    assert message.text == "do telefone"
    assert WebhookEvent.objects.exclude(state=WebhookEvent.State.APPLIED).count() == 0
    # And once more, long after.
    post(session, envelope(session, "message.any", own))
    apply_all(session)
    assert Message.unscoped.count() == 1


def test_a_poisoned_delivery_holds_up_no_other(session: ChannelSession, post: Callable[..., int]) -> None:
    post(session, b'{"event": "message.any"')
    post(session, envelope(session, "session.status", {"status": "STARTING"}, me=None))
    apply_all(session)
    session.refresh_from_db()
    assert session.status == "STARTING"
    assert json.loads(bytes(WebhookEvent.objects.latest("id").body))["event"] == "session.status"
