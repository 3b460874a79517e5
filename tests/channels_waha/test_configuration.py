"""What we ask of a session, laid over what it has."""

from __future__ import annotations

from typing import Any

from channels_waha import configuration

URL = "https://app.example/api/v1/webhooks/waha/loja_1"


def ours(**changes: Any) -> dict[str, Any]:
    return configuration.wanted(webhook_url=URL, secret="s", metadata={"channel_id": "ch_1"}) | changes


def test_a_new_session_gets_the_whole_configuration() -> None:
    found = configuration.merged(None, ours())
    assert found == ours()
    (hook,) = found["webhooks"]
    assert hook["hmac"] == {"key": "s"}
    assert "message" not in hook["events"]
    assert {"message.any", "message.ack", "session.status"} <= set(hook["events"])
    assert len(hook["events"]) == 7
    assert hook["retries"]["policy"] == "exponential"
    assert found["noweb"]["store"]["enabled"]


def test_what_was_merged_once_differs_no_more() -> None:
    # WAHA adds defaults of its own; they must not make it restart the session for ever.
    kept = configuration.merged({"noweb": {"markOnline": True}, "proxy": {"server": "p:1"}, "debug": False}, ours())
    assert kept["noweb"]["markOnline"] is True
    assert kept["proxy"] == {"server": "p:1"}
    assert configuration.merged(kept, ours()) == kept


def test_other_webhooks_stay_and_an_old_address_of_ours_goes() -> None:
    other = {"url": "https://crm.example/hook", "events": ["message"]}
    old = {"url": "http://10.0.0.1:8000/api/v1/webhooks/waha/loja_1", "events": ["message"], "customHeaders": None}
    found = configuration.merged({"webhooks": [other, old, old, "odd", {"url": "http://[bad"}]}, ours())
    urls = [hook["url"] for hook in found["webhooks"]]
    assert urls == [URL, "https://crm.example/hook", "http://[bad"]
    assert found["webhooks"][0]["customHeaders"] is None


def test_odd_configurations_are_replaced_where_they_must() -> None:
    odds: list[Any] = ["text", 7, [], {"webhooks": "x", "noweb": None, "ignore": [], "metadata": {"theirs": "1"}}]
    for odd in odds:
        found = configuration.merged(odd, ours())
        assert found["webhooks"] == ours()["webhooks"]
        assert found["ignore"]["status"] is True
    assert found["metadata"] == {"theirs": "1", "channel_id": "ch_1"}
