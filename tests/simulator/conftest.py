"""The simulator as real processes, one of each kind per test process."""

from collections.abc import Iterator

import pytest

from tests.simulator.caller import Caller
from tests.simulator.receiver import Receiver
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


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()
