"""The bench measures what it says: every send answered, its echo and acks on the way."""

import json
import subprocess
import sys

import pytest

from tests.simulator_client import ROOT


@pytest.mark.parametrize("with_webhooks", [True, False])
def test_the_bench_counts_sends_and_what_follows_them(with_webhooks: bool) -> None:
    command = [sys.executable, "-m", "simulator.bench", "--seconds", "0.5", "--connections", "4"]
    ran = subprocess.run(
        command + ([] if with_webhooks else ["--no-webhooks"]), cwd=ROOT, capture_output=True, timeout=60, check=True
    )
    found = json.loads(ran.stdout)
    assert found["sends"] > 0
    assert (found["webhooks"] > 0) is with_webhooks
    assert found["sends_per_cpu_second"] >= 0.9 * found["sends"] / found["seconds"], "one process uses one core"
