"""The page for people, and what keeps other sites from the control API."""

import re

import pytest

from simulator.control import ROUTES
from tests.simulator.caller import Caller

ASSETS = ["/", "/page/page.css", "/page/page.js", "/page/icon.svg"]
# Calls in the page's code: ask("GET", `chats?…`), and what its buttons of DEEDS name.
CALL = re.compile(r"""ask\("(GET|POST|PUT|DELETE)", [`"]([^`"]+)[`"]""")


def text_of(waha: Caller, path: str) -> str:
    answer = waha.ask("GET", path, None, {})
    assert answer.status_code == 200, path
    answer.encoding = "utf-8"
    return answer.text


@pytest.mark.parametrize("path", ASSETS)
def test_it_is_served_without_a_key_and_asks_no_other_host(waha: Caller, path: str) -> None:
    text = text_of(waha, path)
    foreign = [found for found in re.findall(r"https?://[^\s\"'`)]+", text) if "www.w3.org" not in found]
    assert foreign == []
    policy = waha.ask("GET", path, None, {}).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_what_the_page_refers_to_is_there(waha: Caller) -> None:
    html = text_of(waha, "/")
    for found in re.findall(r"(?:src|href)=\"(page/[^\"]+)\"", html):
        assert text_of(waha, f"/{found}")
    script = text_of(waha, "/page/page.js")
    used = set(re.findall(r"\$\(\"([a-z-]+)\"\)", script))
    assert used <= set(re.findall(r"id=\"([a-z-]+)\"", html))
    assert "innerHTML" not in script


def test_every_call_of_the_page_is_a_call_of_the_control_api(waha: Caller) -> None:
    script = text_of(waha, "/page/page.js")
    known = {(method, re.sub(r"\{[^}]+\}", "{}", path)) for method, path, _ in ROUTES}
    calls = {(method, _path(path)) for method, path in CALL.findall(script)}
    calls |= {("POST", f"/control/sessions/{{}}/{name}") for name in re.findall(r"\w+: \[\"(\w+)\", \{", script)}
    calls.discard(("POST", "/control/sessions/{}/{}"))
    assert len(calls) > 8
    assert calls <= known


def test_every_pane_can_be_left_by_the_browsers_way_back(waha: Caller) -> None:
    """On a phone one pane is seen at a time: without a step in the history, "back" would leave the page."""
    html, script = text_of(waha, "/"), text_of(waha, "/page/page.js")
    panes = re.findall(r"<section id=\"([a-z-]+)\" class=\"pane\"", html)
    depths = re.search(r"const DEPTH = {([^}]+)}", script)
    assert depths
    assert re.findall(r"([a-z]+): (\d)", depths[1]) == [(pane, str(depth)) for depth, pane in enumerate(panes)]
    assert "popstate" in script
    assert "history.pushState" in script


def _path(found: str) -> str:
    return "/control/" + re.sub(r"\$\{[^}]*\}", "{}", found).partition("?")[0]


@pytest.mark.parametrize("name", ["../app.py", "%2e%2e%2fapp.py", "page.py", "index"])
def test_nothing_else_is_served(waha: Caller, name: str) -> None:
    assert waha.ask("GET", f"/page/{name}", None, {"X-Api-Key": waha.key}).status_code == 404


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), (None, 200), ("own", 200)]
)
def test_no_other_site_reaches_the_control_api(waha: Caller, origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"Origin": waha.url if origin == "own" else origin}
    assert waha.ask("GET", "/control/state", None, headers).status_code == status


def test_what_someone_sent_runs_no_script_beside_the_page(waha: Caller) -> None:
    name = waha.working_session()
    full = waha.control.inbound(
        name, sender="5511977770001", text=None, type="document", data="PHNjcmlwdD4=", mimetype="text/html"
    )
    rows = waha.ask("GET", f"/control/messages?session={name}&chat_id=5511977770001@c.us", None, {}).json()
    assert [row["id"] for row in rows] == [full]
    served = waha.ask("GET", f"/control/files/{name}/{rows[0]['file']}", None, {})
    assert served.content == b"<script>"
    assert served.headers["Content-Security-Policy"].startswith("sandbox")


def test_a_person_reads_what_the_phone_got(waha: Caller) -> None:
    name = waha.working_session()
    waha.control.fault("drop_acks", session=name)
    sent = waha.send(name, "5511977770001@c.us", "Promoção").json()["key"]["id"]
    full = f"true_5511977770001@c.us_{sent}"
    waha.control.inbound(name, sender="5511977770001", text="❤️", type="reaction", target=full)
    found = waha.ask("GET", f"/control/chats?session={name}", None, {}).json()
    assert [(chat["chat_id"], chat["last"]["text"]) for chat in found["chats"]] == [("5511977770001@c.us", "Promoção")]
    (row,) = waha.ask("GET", f"/control/messages?session={name}&chat_id=5511977770001@c.us", None, {}).json()
    assert (row["id"], row["ack"], list(row["reactions"].values())) == (full, 0, ["❤️"])
    body = {"session": name, "chat_id": "5511977770001@c.us"}
    headers = {"Content-Type": "application/json"}
    assert waha.ask("POST", "/control/reads", body, headers).json() == {"read": 1}
    assert waha.ask("POST", "/control/reads", body, headers).json() == {"read": 0}


def test_the_qr_is_a_picture_while_one_is_shown(waha: Caller) -> None:
    name = waha.new_session()
    waha.control.wait_for_status(name, "SCAN_QR_CODE")
    assert waha.ask("GET", f"/control/sessions/{name}/qr", None, {}).content.startswith(b"\x89PNG")
    waha.control.pair(name, phone="5511999990001")
    assert waha.ask("GET", f"/control/sessions/{name}/qr", None, {}).status_code == 409
