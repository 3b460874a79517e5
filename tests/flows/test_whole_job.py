"""The main job over HTTP, at the real pace: one message each, nobody who must not get one, nothing in the log."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from broadcast_project.demo import play
from tests.flows.conftest import TIMEOUT, Flow, flow, least_gap
from tests.waiting import until

PEOPLE, NUMBERS = 15, 3


@pytest.fixture(scope="module")
def job() -> Iterator[Flow]:
    yield from flow("flow", people=PEOPLE, numbers=NUMBERS)


def block_in_the_console(job: Flow, contact_id: str) -> None:
    """As the shop owner does it: sign in, open the person, press "block", give a reason."""
    with requests.Session() as browser:
        browser.get(f"{job.stage.url}/admin/login/", timeout=TIMEOUT)

        def post(path: str, **data: str) -> requests.Response:
            form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"], **data}
            return browser.post(f"{job.stage.url}{path}", data=form, timeout=TIMEOUT)

        assert post("/admin/login/", username=job.seeded["admin"], password=job.seeded["password"]).ok
        done = post(f"/admin/audience/contact/{contact_id}/block/", reason="pediu por telefone")
        assert done.ok
        assert done.url.endswith("/change/")


def test_each_reachable_person_gets_exactly_one_message(job: Flow) -> None:
    paired_at = time.time()
    before = job.seen()
    answer = job.post(job.body, **{"Idempotency-Key": "pedido-1"})
    assert answer.status_code == 202
    broadcast = answer.json()
    assert (broadcast["total_recipients"], broadcast["excluded_recipients"]) == (PEOPLE - 3, 3)
    assert answer.headers["Location"].endswith(broadcast["broadcast_id"])

    # Somebody is blocked while the broadcast runs: the last in his number's queue.
    assert until(lambda: bool(job.book_after(before)), timeout=30)
    last = [
        person for person in job.recipients(broadcast["broadcast_id"]) if person["status"] in {"pending", "queued"}
    ][-1]
    (contact,) = job.sql("SELECT id FROM contacts WHERE identity = %s", last["phone"])[0]
    block_in_the_console(job, str(contact))
    seen_before = {entry["chat_id"] for entry in job.book_after(before)}
    assert f"{last['phone']}@c.us" not in seen_before

    # The same request again, while it runs, and another one under its key.
    again = job.post(job.body, **{"Idempotency-Key": "pedido-1"})
    assert (again.status_code, again.json()) == (202, broadcast)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = job.post({**job.body, "name": "outro"}, **{"Idempotency-Key": "pedido-1"})
    assert (other.status_code, other.json()["errors"][0]["code"]) == (422, "idempotency_key_reused")

    *_, state = play.watch(job.api, job.simulator, broadcast["broadcast_id"], time.sleep)
    assert state["status"] == "completed"
    book = job.book_after(before)
    people = Counter(entry["chat_id"] for entry in book)
    by_phone = {person["phone"]: person for person in job.recipients(broadcast["broadcast_id"])}
    reached = {person["phone"] for person in by_phone.values() if person["status"] in {"delivered", "read"}}
    assert set(people) == {f"{phone}@c.us" for phone in reached}
    assert set(people.values()) == {1}
    assert len(reached) == PEOPLE - 4
    assert (by_phone[last["phone"]]["status"], by_phone[last["phone"]]["error_code"]) == ("skipped", "contact_blocked")
    assert Counter(person["exclusion"] for person in by_phone.values() if person["exclusion"]) == Counter(
        ["invalid_phone", "duplicate", "opted_out"]
    )
    assert least_gap(book) >= 5.0
    assert min(entry["acted_at"] for entry in book) >= paired_at
    counts = state["counts"]
    assert sum(counts.values()) == state["total_count"] + counts["excluded"] == PEOPLE
    assert (counts["skipped"], counts["in_doubt"], counts["failed"]) == (1, 0, 0)
    assert state["sent_count"] == state["delivered_count"] == PEOPLE - 4
    assert len({entry["text"] for entry in book}) > 4


def test_a_hundred_posts_at_once_make_one_broadcast_and_cancel_ends_it(job: Flow) -> None:
    before = job.seen()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: job.post(job.body, **{"Idempotency-Key": "cem-vezes"}), range(100)))
    made = {answer.json()["broadcast_id"] for answer in answers if answer.status_code == 202}
    assert len(made) == 1
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert {answer.headers["Retry-After"].isdigit() for answer in answers if answer.status_code == 409} <= {True}
    assert job.sql("SELECT count(*) FROM broadcasts WHERE idempotency_key = 'cem-vezes'") == [(1,)]
    (broadcast_id,) = made
    canceled = job.move(broadcast_id, "cancel")
    assert (canceled.status_code, canceled.json()["status"]) == (200, "canceled")
    assert job.move(broadcast_id, "cancel").status_code == 409
    settled = {"canceled", "skipped", "excluded", "sent", "delivered", "read"}
    assert until(lambda: {person["status"] for person in job.recipients(broadcast_id)} <= settled, timeout=40)
    # At most the one message of each number that was past its gate has left.
    assert len(job.book_after(before)) <= NUMBERS


def test_strangers_and_garbage_get_an_answer_with_a_code(job: Flow) -> None:
    def post(data: bytes, **headers: str) -> requests.Response:
        given = {"Authorization": f"Bearer {job.seeded['key']}", "Content-Type": "application/json", **headers}
        return requests.post(f"{job.stage.url}/api/v1/broadcasts", data=data, headers=given, timeout=TIMEOUT)

    stranger = "Bearer cbk_abcdefgh_" + "x" * 43
    assert post(b"{}", Authorization=stranger).status_code == 401
    bodies = [b"{", b"[]", b'"x"', b"null", b'{"group_id": 7}', b'{"grupo": 1}', b'{"group_id": "a\\u0000"}', b"\xff"]
    bodies += [b'{"a":' * 200 + b"1" + b"}" * 200, b"[" * 100_000, b"x" * 1_000_000, b'{"x": NaN}']
    for body in bodies:
        answer = post(body)
        assert 400 <= answer.status_code < 500, body[:40]
        assert answer.json()["errors"][0]["code"], body[:40]
        assert answer.headers["X-Request-Id"]


def test_the_log_of_the_whole_run_shows_no_secret_and_no_text(job: Flow) -> None:
    log = "\n".join(job.log)
    # By position: a secret may hold the underscore too.
    assert job.seeded["key"][-43:] not in log
    assert job.seeded["password"] not in log
    for name in ("SECRET_KEY", "FIELD_ENCRYPTION_KEYS"):
        assert job.stage.env[name] not in log
    assert not re.search(r"\b[0-9a-f]{128}\b", log)
    for entry in job.book():
        assert entry["text"] not in log
    assert "Curso de Python" not in log
    # What is encrypted at rest is not to be found in the tables either.
    secrets = job.sql("SELECT webhook_secret FROM channel_sessions")
    assert len(secrets) == NUMBERS
    assert all(secret.startswith("gAAAA") for (secret,) in secrets)
