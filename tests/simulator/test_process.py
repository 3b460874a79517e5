"""The program itself: its port, its end, and that nothing is left behind."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import waiting
from tests.simulator.caller import Caller
from tests.simulator_client import ROOT, SimulatorControl, SimulatorProcess


def is_alive(pid: int) -> bool:
    """A zombie is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_port_is_printed_and_written(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    with SimulatorProcess(options=("--port-file", str(port_file))) as simulator:
        assert int(port_file.read_text()) == simulator.port
        assert sorted(tmp_path.iterdir()) == [port_file]


def test_a_taken_port_is_a_clear_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "simulator", "--port", port]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    words = f"simulator: can't listen on 127.0.0.1:{port} (Address already in use): choose another with --port"
    assert done.stderr.strip() == words


def test_a_block_leaves_no_process_behind() -> None:
    with SimulatorProcess() as simulator:
        pid = simulator.pid
        assert is_alive(pid)
    assert not is_alive(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_well_at_a_signal_even_with_a_call_hanging(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "simulator"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        control = SimulatorControl(f"http://127.0.0.1:{port}")
        control.fault("hang", op="ping")
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
            assert waiting.until(lambda: control.faults()[0]["hits"] == 1)
            process.send_signal(number)
            assert process.wait(10) == 0
        control.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death")
def test_it_dies_with_who_started_it(tmp_path: Path) -> None:
    starter = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'simulator', '--die-with-parent'],"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", starter]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert waiting.until(lambda: not is_alive(pid))


def test_a_crash_forgets_the_sessions_and_keeps_the_book_on_file(tmp_path: Path) -> None:
    simulator = SimulatorProcess(book=tmp_path / "book.jsonl")
    with simulator:
        caller = Caller(simulator)
        caller.send(caller.working_session())
        caller.close()
        port = simulator.port
        simulator.kill()
        simulator.start()
        assert simulator.port == port
        assert [entry["answered"] for entry in simulator.control.book()] == ["201"]
        assert simulator.control.state()["sessions"] == []


def test_it_imports_nothing_of_the_product() -> None:
    allowed = {"simulator", "aiohttp", "orjson", "segno", "uvloop", *sys.stdlib_module_names}
    for path in (ROOT / "simulator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            assert {name.partition(".")[0] for name in names} <= allowed, path
