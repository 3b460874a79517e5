"""What a run is told, and the settings that let a lot happen per second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The paces, leases and patience of the engine, some ten times shorter than they are by default.
PACE_SCALE = 0.2
# Longer than the skewed worker's clock is off: the rings' own expiry is judged by workers' clocks.
LEASE_SECONDS = 6
DEADLINE_SECONDS = 3
SETTLE_SECONDS = 3
EVIDENCE_SECONDS = 15
BEAT_SECONDS = 2
SETTINGS = {
    "PACE_SCALE": str(PACE_SCALE),
    "CLAIM_LEASE_SECONDS": str(LEASE_SECONDS),
    "SEND_DEADLINE_SECONDS": str(DEADLINE_SECONDS),
    "SETTLE_SECONDS": str(SETTLE_SECONDS),
    "FIRST_BYTE_SECONDS": "1",
    "EVIDENCE_SECONDS": str(EVIDENCE_SECONDS),
    "ECHO_PATIENCE_SECONDS": "4",
    "FEED_AHEAD_SECONDS": "4",
    "BEAT_SECONDS": str(BEAT_SECONDS),
    "DATABASE_POOL_SIZE": "3",
    "DATABASE_POOL_WAIT_SECONDS": "3",
    "API_REQUESTS_PER_MINUTE": "1000000",
    "LOG_LEVEL": "WARNING",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``rate``: blows per second. Every choice is drawn from ``seed``; what it meets is the machine's."""

    kills: int = 60
    seed: int = 1
    rate: float = 1.5
    people: int = 40
    numbers: int = 10
    workers: int = 4
    dispatchers: int = 2
    beats: int = 2
    callers: int = 2
    stops: int = 1
    engine: str = "NOWEB"
    json_file: Path | None = None
    markdown: bool = False
    log_file: Path | None = None


def from_arguments(arguments: Sequence[str]) -> Options:
    """Read the command line; exits with a usage message when it is wrong."""
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    add = parser.add_argument
    add("--kills", type=int, default=defaults.kills, help="how many processes are killed before the run is judged")
    add("--seed", type=int, default=defaults.seed, help="makes the choices repeatable")
    add("--rate", type=float, default=defaults.rate, help="blows per second")
    add("--people", type=int, default=defaults.people, help="lines of the group")
    add("--numbers", type=int, default=defaults.numbers)
    add("--workers", type=int, default=defaults.workers, help="the last one's clock is five seconds ahead")
    add("--dispatchers", type=int, default=defaults.dispatchers)
    add("--beats", type=int, default=defaults.beats)
    add("--callers", type=int, default=defaults.callers, help="broadcasts that run at a time")
    add("--stops", type=int, default=defaults.stops, help="how many processes stand still for longer than any lease")
    add("--engine", choices=("NOWEB", "GOWS", "WEBJS"), default=defaults.engine, help="WEBJS takes no ids of ours")
    add("--json", dest="json_file", type=Path, metavar="FILE")
    add("--markdown", action="store_true", help="print the table as the README shows it")
    add("--log", dest="log_file", type=Path, metavar="FILE", help="keep every line of the processes")
    return Options(**vars(parser.parse_args(arguments)))
