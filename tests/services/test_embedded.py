"""The life of the embedded services, as whoever runs the tests (root and others differ in places)."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis

from broadcast_project import embedded
from broadcast_project.embedded import AlreadyRunningError, Embedded, EmbeddedError
from broadcast_project.embedded.layout import Layout
from broadcast_project.embedded.strays import processes_in
from tests.services.conftest import ROOT, Own, gone, servers
from tests.waiting import until


def _modes(folder: Path) -> dict[Path, int]:
    return {parent: parent.stat().st_mode for parent in [folder, *folder.parents]}


def _query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, connect_timeout=10) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_both_answer_and_leave_nothing(state: Path) -> None:
    before = _modes(state)
    with Embedded(state, durable=False) as addresses:
        assert _query(addresses.database_url, "SELECT lower('ÁÇ'), current_user") == [("áç", "broadcast")]
        assert redis.Redis.from_url(addresses.redis_url).ping()
        assert embedded.running(state) == addresses == embedded.addresses(state)
    assert not servers(state)
    assert embedded.running(state) is None
    assert not Layout.of(state, "main").base.exists()
    assert _modes(state) == before


def test_addresses_ask_nothing_of_the_disk(state: Path) -> None:
    assert embedded.addresses(state).database_url.startswith("postgres://broadcast:")
    assert list(state.iterdir()) == []


def test_nobody_enters_without_the_password(state: Path) -> None:
    with Embedded(state, durable=False) as addresses:
        password = addresses.database_url.split(":")[2].split("@")[0]
        for user in ("broadcast", "postgres"):
            forged = addresses.database_url.replace(password, "guess").replace("//broadcast", f"//{user}")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                _query(forged, "SELECT 1")
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url("redis://" + addresses.redis_url.split("@")[1]).ping()


def test_files_are_private(state: Path) -> None:
    layout = Layout.of(state, "main")
    with Embedded(state, durable=False):
        files = [path for path in layout.state.iterdir() if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        for folder in (*layout.data_folders, layout.sockets):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert layout.postgres.stat().st_uid != 0


def test_data_is_kept_if_durable(state: Path) -> None:
    with Embedded(state) as addresses:
        _query(addresses.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
        redis.Redis.from_url(addresses.redis_url).set("kept", "7")
    with Embedded(state) as again:
        assert again == addresses
        assert _query(again.database_url, "SELECT n FROM kept") == [(7,)]
        assert redis.Redis.from_url(again.redis_url).get("kept") == b"7"


def test_data_is_new_if_not_durable(state: Path) -> None:
    for _ in range(2):
        with Embedded(state, durable=False) as addresses:
            _query(addresses.database_url, "CREATE TABLE once ()")


def test_killed_owner_leaves_no_process_and_no_loss(state: Path, own: Own) -> None:
    owner = own(state, keep=True)
    _query(owner.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
    busy = psycopg.connect(owner.database_url)
    assert servers(state)
    owner.kill()
    assert gone(state)
    busy.close()
    assert embedded.running(state) is None
    with Embedded(state) as addresses:
        assert _query(addresses.database_url, "SELECT n FROM kept") == [(7,)]


def test_owner_and_postgres_killed_together(state: Path, own: Own) -> None:
    owner = own(state, keep=True)
    _query(owner.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
    postmaster = int((Layout.of(state, "main").postgres / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, 9)
    owner.kill()
    with Embedded(state) as addresses:
        assert _query(addresses.database_url, "SELECT n FROM kept") == [(7,)]


def test_reused_process_number_does_not_bar_the_start(state: Path) -> None:
    with Embedded(state):
        lock = (Layout.of(state, "main").postgres / "postmaster.pid").read_text().splitlines()
    lock[0] = str(os.getpid())
    (Layout.of(state, "main").postgres / "postmaster.pid").write_text("\n".join(lock))
    with Embedded(state) as addresses:
        assert _query(addresses.database_url, "SELECT 1") == [(1,)]


def test_second_owner_is_told_who_holds_them(state: Path, own: Own) -> None:
    owner = own(state)
    with pytest.raises(AlreadyRunningError, match=str(owner.popen.pid)):
        Embedded(state, durable=False).start()
    running = embedded.running(state)
    assert running is not None
    assert running.database_url == owner.database_url
    assert owner.stop() == 0


def test_available_uses_what_runs_and_else_starts(state: Path, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    owner = own(state, keep=True)
    with embedded.available(state):
        assert _query(owner.database_url, "SELECT 1") == [(1,)]
    assert _query(owner.database_url, "SELECT 1") == [(1,)]
    assert owner.stop() == 0
    lines: list[str] = []
    with embedded.available(state, say=lines.append):
        assert _query(owner.database_url, "SELECT 1") == [(1,)]
    assert len(lines) == 1
    assert not servers(state)


def test_available_starts_nothing_where_both_are_named(state: Path) -> None:
    with embedded.available(state):
        assert list(state.iterdir()) == []


def test_opened_data_folder_is_refused(state: Path) -> None:
    with Embedded(state):
        pass
    Layout.of(state, "main").postgres.chmod(0o755)
    with pytest.raises(EmbeddedError, match="chmod 0700"):
        Embedded(state).start()
    assert not servers(state)


def test_data_of_another_major_version_is_refused(state: Path) -> None:
    with Embedded(state):
        pass
    (Layout.of(state, "main").postgres / "PG_VERSION").write_text("16\n")
    before = _content(Layout.of(state, "main").postgres)
    with pytest.raises(EmbeddedError, match=r"(?s)written by PostgreSQL 16, this is 18.*upgrade-postgresql\.md"):
        Embedded(state).start()
    assert embedded.running(state) is None
    assert _content(Layout.of(state, "main").postgres) == before
    assert (ROOT / "docs" / "runbooks" / "upgrade-postgresql.md").exists()


def test_folder_that_holds_no_data_of_postgresql_is_refused(state: Path) -> None:
    with Embedded(state):
        pass
    (Layout.of(state, "main").postgres / "PG_VERSION").unlink()
    with pytest.raises(EmbeddedError, match="no data folder of PostgreSQL: move it away"):
        Embedded(state).start()


def test_broken_file_of_the_broker_is_named_with_what_to_do(state: Path) -> None:
    with Embedded(state) as addresses:
        redis.Redis.from_url(addresses.redis_url).set("key", "value" * 1000)
    layout = Layout.of(state, "main")
    (file,) = (layout.valkey / "appendonlydir").glob("*.incr.aof")
    file.write_bytes(b"*1\r\n$x" + file.read_bytes())
    with pytest.raises(EmbeddedError, match=f"(?s)valkey does not stay up.*move {layout.valkey} away"):
        Embedded(state).start()
    assert not servers(state)


def test_a_shell_that_stands_in_the_data_is_left_alone(state: Path) -> None:
    with Embedded(state):
        pass
    shell = subprocess.Popen(
        [sys.executable, "-c", "input()"], cwd=Layout.of(state, "main").postgres, stdin=subprocess.PIPE
    )
    try:
        with Embedded(state) as addresses:
            assert _query(addresses.database_url, "SELECT 1") == [(1,)]
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.communicate()


def test_two_checkouts_side_by_side(tmp_path: Path) -> None:
    here, there = Embedded(tmp_path / "a", durable=False), Embedded(tmp_path / "b", durable=False)
    with here as one, there as other:
        _query(one.database_url, "CREATE TABLE mine ()")
        assert _query(other.database_url, "SELECT to_regclass('mine')") == [(None,)]
        assert one.redis_url != other.redis_url


def test_long_and_odd_path(tmp_path: Path) -> None:
    state = tmp_path / ("a, b " + "long " * 20) / ("x" * 100)
    with Embedded(state, durable=False) as addresses:
        assert _query(addresses.database_url, "SELECT 1") == [(1,)]
    assert not servers(state)


def test_services_fail_and_return_on_command(state: Path) -> None:
    services = Embedded(state, durable=False)
    addresses = services.start()
    broker = redis.Redis.from_url(addresses.redis_url)
    try:
        _query(addresses.database_url, "CREATE TABLE kept AS SELECT 7 AS n")
        services.restart_postgres("fast")
        services.restart_postgres()
        services.kill_postgres()
        with pytest.raises(psycopg.OperationalError):
            _query(addresses.database_url, "SELECT 1")
        services.start_postgres()
        assert _query(addresses.database_url, "SELECT n FROM kept") == [(7,)]
        broker.set("key", "value")
        services.flush_valkey()
        assert broker.get("key") is None
        services.kill_valkey()
        with pytest.raises(redis.ConnectionError):
            broker.ping()
        services.start_valkey()
        assert broker.ping()
    finally:
        services.stop()
    assert not servers(state)


def test_a_server_that_dies_is_started_again(state: Path) -> None:
    services = Embedded(state, durable=False)
    addresses = services.start()
    try:
        before = services.pids()
        os.kill(before["valkey"], 9)
        assert until(lambda: services.pids().get("valkey") not in {None, before["valkey"]})
        services.wait_ready()
        assert redis.Redis.from_url(addresses.redis_url).ping()
    finally:
        services.stop()


def test_services_outlive_the_thread_that_started_them(state: Path) -> None:
    services = Embedded(state, durable=False)
    starter = threading.Thread(target=services.start)
    starter.start()
    starter.join()
    try:
        assert _query(services.addresses.database_url, "SELECT 1") == [(1,)]
        assert services.pids().keys() == {"postgres", "valkey"}
    finally:
        services.stop()


def test_racing_processes_agree_on_a_kept_secret(state: Path) -> None:
    drawn = iter(["first", "second"])
    assert embedded.kept_secret(state, "key", lambda: next(drawn)) == "first"
    assert embedded.kept_secret(state, "key", lambda: next(drawn)) == "first"
    kept = state / "secrets" / "key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert list(kept.parent.iterdir()) == [kept]


def test_owner_killed_while_it_makes_the_data_folder(state: Path) -> None:
    base = Layout.of(state, "main").base
    command = [sys.executable, "-m", "tests.services.owner", str(state), "keep"]
    owner = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert until(lambda: (base / "postgres.new" / "PG_VERSION").exists())
    owner.kill()
    owner.communicate()
    assert until(lambda: not processes_in([base, base / "postgres.new"]))
    with Embedded(state) as addresses:
        assert _query(addresses.database_url, "SELECT 1") == [(1,)]


def test_servers_are_told_no_secret_of_ours(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "not for the servers")
    services = Embedded(state, durable=False)
    addresses = services.start()
    try:
        for pid in services.pids().values():
            assert b"not for the servers" not in Path(f"/proc/{pid}/environ").read_bytes()
            for secret in re.findall(r":([\w-]{20,})@", addresses.database_url + addresses.redis_url):
                assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    finally:
        services.stop()


def test_valkey_listens_where_no_client_is_given_a_port(state: Path) -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with Embedded(state, durable=False) as addresses:
        port = urlsplit(addresses.redis_url).port
        assert port is not None
        assert port < lowest
