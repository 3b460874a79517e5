"""What the simulator is told at start."""

import argparse
from dataclasses import dataclass
from pathlib import Path

ENGINES = ("NOWEB", "GOWS", "WEBJS")

# WAHA's own features that came with a version.
IDS_TAKEN_SINCE = (2026, 4, 3)
KEY_IN_QUERY_SINCE = (2026, 4, 3)
PLUS_FOR_ALL_SINCE = (2026, 6, 1)
RESTRICTIONS_TOLD_SINCE = (2026, 8, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of one simulated server. Durations in seconds, before `time_scale`."""

    host: str = "127.0.0.1"
    port: int = 0
    port_file: Path | None = None
    time_scale: float = 1.0
    version: str = "2026.7.1"
    engine: str = "NOWEB"
    tier: str = "CORE"
    api_key: str = "simulator"
    seed: int | None = None
    book_file: Path | None = None
    keepalive: float = 5.0
    echo_before_share: float = 0.15
    ack_delays: tuple[float, float, float] = (0.4, 0.9, 3.0)
    read_share: float = 1.0
    base_url: str = "http://localhost:3000"
    files_lifetime: float = 180.0
    die_with_parent: bool = False

    @property
    def version_numbers(self) -> tuple[int, ...]:
        return parse_version(self.version)

    @property
    def is_restricted(self) -> bool:
        """Old Core: one session named `default`, text only."""
        return self.tier == "CORE" and self.version_numbers < PLUS_FOR_ALL_SINCE


def parse_version(version: str) -> tuple[int, ...]:
    """`2026.4.3` → (2026, 4, 3); a part that is no number ends it."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def from_arguments(arguments: list[str]) -> Options:
    """Read the command line; exits with a usage message when it is wrong."""
    parsed = _parser().parse_args(arguments)
    return Options(**vars(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description="A stand-in for WAHA.")
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0 takes a free one and prints it")
    add("--port-file", type=Path, help="write the port here once it listens")
    add(
        "--time-scale",
        type=float,
        default=1.0,
        help="multiplies every wait of WAHA and of phones; 0.05 is fast",
    )
    add("--version", default="2026.7.1", help="the version to pose as")
    add("--engine", choices=ENGINES, default="NOWEB")
    add("--tier", choices=("CORE", "PLUS"), default="CORE")
    add("--api-key", default="simulator")
    add("--seed", type=int, help="makes chance repeatable; ids stay unique")
    add("--book", dest="book_file", type=Path, help="append what each phone got to this JSONL file")
    add("--keepalive", type=float, default=5.0, help="real seconds until an idle connection is closed")
    add("--echo-before-share", type=float, default=0.15, help="share of echoes posted before the answer")
    add("--ack-delays", type=_three_seconds, default=(0.4, 0.9, 3.0), metavar="SERVER,DEVICE,READ")
    add("--read-share", type=float, default=1.0, help="share of messages that are ever read")
    add("--base-url", default="http://localhost:3000", help="WAHA_BASE_URL: what stands before /api/files/ in webhooks")
    add("--files-lifetime", type=float, default=180.0, help="real seconds until a file is gone; 0 keeps it")
    add("--die-with-parent", action="store_true", help="end when the starting process does")
    return parser


def _three_seconds(text: str) -> tuple[float, float, float]:
    try:
        server, device, read = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError("three numbers, as 0.4,0.9,3") from None
    return server, device, read
