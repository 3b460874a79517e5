"""Recorded exchanges, asked again: the same status, and a body of the same keys and types.

Each row is brought back to the state it was recorded in. Rows of the one-session server are asked from an old
Core, rows of several sessions (m_, x_) from a new server under a session name of their own.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests import waiting
from tests.simulator.caller import Caller
from tests.simulator.recorded import exchanges, shape

ROWS = exchanges()
PHONE = "447700900001"
CHAT = "447700900123@c.us"
STORE_ON = {"noweb": {"store": {"enabled": True, "fullSync": False}}}
NOWHERE = "127.0.0.1:1"
SENT_ID = re.compile(r"3EB0[0-9A-F]{18}")

# The state of the session → the rows recorded in it.
CORE_ROWS = {
    "fresh": "create_default_on_fresh_core",
    "missing": """
        create_start_false_after_delete_core
        auth_missing_key auth_wrong_key auth_empty_key auth_key_in_query health_no_key health server_version
        server_status server_version_no_key fresh_list get_after_delete list_all_after_delete stop_deleted
        qr_deleted sendText_deleted_session create_bad_webhook_url create_bad_event create_bad_policy
        create_bad_name create_start_true_after_phantom sendText_unknown_session_core sendText_empty_body
        check_exists_unknown_session get_deleted delete_again delete_unknown_core""",
    "scanning": """
        request_code_ok_1 sendText_when_scan_qr_1 stop_scan_qr qr_immediately_after_start get_scan_qr_clean
        start_deprecated_when_started qr_json_accept qr_png_accept qr_any_accept qr_raw qr_bad_format
        sendText_when_scan_qr request_code request_code_method request_code_missing_phone
        create_duplicate_running screenshot_scan_qr""",
    "code asked for": "me_scan_qr_after_request_code_2 get_scan_qr",
    "stopped": """
        restart_stopped_1 start list_all_after_stop start_again create_duplicate_stopped stopped_qr
        stopped_request_code stopped_me stopped_stop stopped_put stopped_restart q_put_default o2_put
        o2_start""",
    "working": """
        get_working list_working qr_when_working request_code_when_working sendText_ok sendText_missing_text
        sendText_empty_text sendText_chatId_number sendText_plus_phone sendText_garbage_chatId
        sendText_lid_chatId sendText_group sendText_swhatsapp sendText_form_encoded sendSeen stopTyping
        check_exists_plus check_exists_missing_phone chat_message_unknown update_config_running
        update_config_null update_config_back restart_working stop_working logout_working stop
        get_reconnecting_starting get_after_restart_failed screenshot_working sendFile_core sendVoice_core
        sendLocation sendContactVcard reaction_bad_id forward_unknown lids_all lids_count lid_to_pn_bare
        lid_to_pn_unknown lid_to_pn_invalid pn_to_lid chats chats_overview contact_get profile_picture""",
    "contact known": """
        lids_all_known lid_to_pn_known lid_to_pn_bare_known pn_to_lid_known pn_to_lid_bare_known lids_limit
        chats_known chats_overview_known contact_get_known contacts_all""",
    "number missing": "check_exists_no",
    "engine dropped": "sendText_engine_error",
    "message sent": """
        sendText_reply chat_message_by_id chat_message_by_short_id chat_message_wrong_chat
        chat_message_via_lid_chat chat_message_by_id_read chat_message_by_short_id_read reaction reaction_remove
        edit_message delete_message""",
    "failed": """
        get_after_phone_logout sendText_when_failed start_when_failed qr_when_failed restart_when_failed
        q_request_code_failed q_qr_after_expired q_restart""",
    "offline": "o_get_1s o_qr o_get_60s o_stop",
    "failed before pairing": "q_after_qr_expired o2_get_after_stuck_starting",
    "stopped without a configuration": "r_list_all_after_process_restart r_start",
    "working without a configuration": "r_get s_list_after_autostart",
}
NEW_ROWS = {
    "missing": """
        m_list_all_empty m_get_unknown m_start_unknown m_stop_unknown m_restart_unknown m_logout_unknown
        m_put_unknown m_delete_unknown m_me_unknown m_qr_unknown m_sendText_unknown m_check_exists_unknown
        m_get_deleted x_create m_sendText_unknown_while_other_works m_create_noname m_lids_unknown""",
    "stopped": "m_create_duplicate m_get_stopped m_list_all m_start m_start_after",
    "scanning": "m_qr_raw m_get_after_logout",
    "working": """
        m_get_working m_list_working m_sendText_with_id m_sendText_with_same_id m_parallel_1 m_parallel_2
        m_logout m_delete x_stop m_lock_restart_first m_lock_stop_second m_lock_pile_0 m_lock_pile_1
        m_sendImage_url m_sendFile_url m_sendVoice_url m_sendVideo_url m_sendImage_data m_sendImage_url_down
        m_sendImage_no_file m_sendLocation""",
}
# Moments that pass: asked of a server whose waits are as long as they were.
SLOW_ROWS = {
    "starting": "list_starting list_all_starting",
    "just working": "get_working_immediately",
    "restarted by others": "m_lock_pile_2 m_lock_pile_3",
}


def cases(rows: dict[str, str]) -> list[Any]:
    return [pytest.param(state, ROWS[name], id=name) for state, names in rows.items() for name in names.split()]


@pytest.mark.parametrize(("state", "row"), cases(CORE_ROWS))
def test_an_old_core_answers_as_recorded(core: Caller, state: str, row: dict[str, Any]) -> None:
    sent_id = STATES[state](core, "default", config_of(row))
    ask_and_compare(core, row, "default", sent_id)


@pytest.mark.parametrize(("state", "row"), cases(NEW_ROWS))
def test_a_new_server_answers_as_recorded(waha: Caller, file_server: str, state: str, row: dict[str, Any]) -> None:
    name = f"r_{row['name']}"
    try:
        STATES[state](waha, name, config_of(row))
        ask_and_compare(waha, row, name, files_at=file_server)
    finally:
        waha.delete(f"/api/sessions/{name}")


@pytest.mark.parametrize(("state", "row"), cases(SLOW_ROWS))
def test_a_moment_that_passes_is_answered_as_recorded(slow: Caller, state: str, row: dict[str, Any]) -> None:
    name = f"r_{row['name']}"
    STATES[state](slow, name, config_of(row))
    ask_and_compare(slow, row, name)


def test_every_row_is_asked() -> None:
    tables = (CORE_ROWS, NEW_ROWS, SLOW_ROWS)
    asked = [name for rows in tables for names in rows.values() for name in names.split()]
    assert sorted(asked) == sorted(ROWS)


def ask_and_compare(
    caller: Caller, row: dict[str, Any], session: str, sent_id: str | None = None, *, files_at: str = NOWHERE
) -> None:
    request, recorded = row["request"], row["response"]
    headers = {name: value for name, value in request["headers"].items() if name != "X-Api-Key"}
    answer = caller.ask(
        request["method"],
        named(request["path"], session, sent_id),
        named(request["body"], session, sent_id, files_at=files_at),
        headers | key_of(row, caller),
    )
    assert answer.status_code == recorded["status"], answer.text
    assert answer.headers.get("Content-Type") == recorded["headers"].get("Content-Type")
    if recorded["body"] == "":
        assert answer.content == b""
    elif isinstance(recorded["body"], dict) and "base64" in recorded["body"]:
        assert answer.content.startswith(b"\x89PNG")
    else:
        found = answer.json()
        if isinstance(found, list) and request["path"].startswith("/api/sessions"):
            found = [item for item in found if item["name"] == session]
        assert shape(found) == shape(recorded["body"])
        if recorded["status"] in (400, 401, 404, 422):
            assert found == named(recorded["body"], session, sent_id)


def key_of(row: dict[str, Any], caller: Caller) -> dict[str, str]:
    """The key as it was sent then: right, wrong, empty or not at all."""
    if "X-Api-Key" not in row["request"]["headers"]:
        return {}
    wrong = {"auth_wrong_key": "wrong", "auth_empty_key": ""}
    return {"X-Api-Key": wrong.get(row["name"], caller.key)}


def named(value: Any, session: str, sent_id: str | None, *, files_at: str = NOWHERE) -> Any:
    """A recorded value for our session and our message; webhooks go where nobody listens."""
    if isinstance(value, dict):
        return {key: named(item, session, sent_id, files_at=files_at) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item, session, sent_id, files_at=files_at) for item in value]
    if not isinstance(value, str):
        return value
    found = re.sub(r"\b(acc1_num2|acc9|default)\b", session, value)
    found = found.replace("127.0.0.1:9901", files_at)
    return SENT_ID.sub(sent_id, found) if sent_id else found


def config_of(row: dict[str, Any]) -> dict[str, Any]:
    """The configuration the recorded session had."""
    body = row["response"]["body"]
    first = body[0] if isinstance(body, list) and body else body
    config = first.get("config") if isinstance(first, dict) else None
    return dict(named(config, "default", None)) if config else STORE_ON


# -- states: each makes the session, and may return the id of a message it sent --


def missing(caller: Caller, name: str, config: Any) -> None:
    caller.delete(f"/api/sessions/{name}")


def stopped(caller: Caller, name: str, config: Any) -> None:
    caller.post("/api/sessions", {"name": name, "start": False, "config": config})


def scanning(caller: Caller, name: str, config: Any) -> None:
    caller.post("/api/sessions", {"name": name, "start": True, "config": config})
    caller.control.wait_for_status(name, "SCAN_QR_CODE")


def code_asked_for(caller: Caller, name: str, config: Any) -> None:
    scanning(caller, name, config)
    caller.post(f"/api/{name}/auth/request-code", {"phoneNumber": PHONE})


def working(caller: Caller, name: str, config: Any) -> None:
    """Once its name is known, which lags behind WORKING."""
    scanning(caller, name, config)
    caller.control.pair(name, phone=PHONE)
    assert waiting.until(lambda: "pushName" in caller.control.session(name)["me"])


def number_missing(caller: Caller, name: str, config: Any) -> None:
    working(caller, name, config)
    caller.control.number("447700900999", exists=False)


def engine_dropped(caller: Caller, name: str, config: Any) -> None:
    working(caller, name, config)
    caller.control.fault("status", status=500, session=name, count=1)


def message_sent(caller: Caller, name: str, config: Any) -> str:
    working(caller, name, config)
    return str(caller.send(name, CHAT, "lookup me").json()["key"]["id"])


def failed(caller: Caller, name: str, config: Any) -> None:
    working(caller, name, config)
    caller.control.unlink(name)


def offline(caller: Caller, name: str, config: Any) -> None:
    scanning(caller, name, config)
    caller.control.drop(name, stay=True)


def failed_before_pairing(caller: Caller, name: str, config: Any) -> None:
    scanning(caller, name, config)
    caller.control.unlink(name)


def fresh(caller: Caller, name: str, config: Any) -> None:
    """As when the server has just been set up: old Core holds a session then that no list shows."""
    caller.control.reset()


def contact_known(caller: Caller, name: str, config: Any) -> None:
    """In the address book, with a hidden id, and written to."""
    working(caller, name, STORE_ON)
    caller.control.save_contact(name, "447700900123", name="Alice Saved", push_name="alice", lid="155500001111@lid")
    caller.send(name, CHAT, "lookup me")


def starting(caller: Caller, name: str, config: Any) -> None:
    caller.post("/api/sessions", {"name": name, "start": True, "config": config})


def just_working(caller: Caller, name: str, config: Any) -> None:
    starting(caller, name, config)
    caller.control.pair(name, phone=PHONE)


def restarted_by_others(caller: Caller, name: str, config: Any) -> None:
    """Two restarts are under way: the third in line waits longer than WAHA lets it."""
    starting(caller, name, config)
    for _ in range(2):
        caller.begin("POST", f"/api/sessions/{name}/restart")
    caller.control.wait_for_status(name, "STOPPED")


def stopped_without_a_configuration(caller: Caller, name: str, config: Any) -> None:
    stopped(caller, name, None)


def working_without_a_configuration(caller: Caller, name: str, config: Any) -> None:
    working(caller, name, None)


STATES: dict[str, Callable[[Caller, str, Any], str | None]] = {
    found.__name__.replace("_", " "): found
    for found in (
        missing,
        stopped,
        scanning,
        code_asked_for,
        working,
        number_missing,
        engine_dropped,
        message_sent,
        failed,
        offline,
        failed_before_pairing,
        fresh,
        contact_known,
        starting,
        just_working,
        restarted_by_others,
        stopped_without_a_configuration,
        working_without_a_configuration,
    )
}
