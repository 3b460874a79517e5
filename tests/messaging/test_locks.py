"""Advisory locks over calls of the network."""

from __future__ import annotations

import pytest

from messaging import cron, db

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lock_is_held_once_and_ends_with_its_block() -> None:
    with db.tried_lock(9, "a") as first, db.tried_lock(9, "a") as second, db.tried_lock(9, "b") as other:
        assert (first, second, other) == (True, False, True)
    with db.tried_lock(9, "a") as again:
        assert again


def test_a_run_whose_steps_give_back_their_connection_leaves_no_lock() -> None:
    def borrow() -> int:
        with db.borrowed():
            db.database_now()
        return 1

    for _ in range(3):
        run = cron.run("a run", ("borrow", borrow), ("and again", borrow))
        assert run is not None
        assert run.items_processed == 2
    held = "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = current_database()"
    assert db.rows(f"{held} AND l.locktype = 'advisory'") == []
