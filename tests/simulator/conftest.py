"""The simulator as real processes, one of each kind per test process."""

from collections.abc import Iterator

import pytest

from tests.simulator.caller import Caller
from tests.simulator.receiver import FileServer, Receiver
from tests.simulator_client import SimulatorProcess

SCALE = 0.02


@pytest.fixture(scope="session")
def plus_process() -> Iterator[SimulatorProcess]:
    """A new WAHA: every feature, ids taken."""
    with SimulatorProcess(time_scale=SCALE, options=("--echo-before-share", "0")) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def core_process() -> Iterator[SimulatorProcess]:
    """The old free one that the exchanges were recorded from: one session, text only."""
    with SimulatorProcess(time_scale=SCALE / 2, version="2026.2.1") as simulator:
        yield simulator


@pytest.fixture(scope="session")
def slow_process() -> Iterator[SimulatorProcess]:
    """Its waits are as long as those of the server that was recorded."""
    with SimulatorProcess(time_scale=1, version="2026.2.1", options=("--tier", "PLUS")) as simulator:
        yield simulator


@pytest.fixture
def slow(slow_process: SimulatorProcess) -> Iterator[Caller]:
    caller = Caller(slow_process)
    yield caller
    caller.close()


@pytest.fixture
def waha(plus_process: SimulatorProcess) -> Iterator[Caller]:
    caller = Caller(plus_process)
    yield caller
    caller.close()


@pytest.fixture
def core(core_process: SimulatorProcess) -> Iterator[Caller]:
    """With its one session gone."""
    caller = Caller(core_process)
    caller.delete("/api/sessions/default")
    yield caller
    caller.close()


@pytest.fixture(scope="session")
def file_server() -> Iterator[str]:
    """Host and port of a server that has any picture and any file."""
    found = FileServer()
    yield found.address
    found.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()
