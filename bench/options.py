"""What a run of the benchmark is told."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PARTS = (
    "freeze",
    "joining",
    "counters",
    "feeding",
    "intake",
    "isolation",
    "engine",
    "slices",
    "lanes",
    "serial",
    "memory",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Sizes of a run; the defaults end within some three minutes on two cores that do nothing else."""

    parts: Sequence[str] = PARTS
    people: int = 100_000
    messages: int = 800
    numbers: int = 24
    serial: int = 1_500
    paced: int = 10_000
    seconds: float = 3.0
    rounds: int = 3
    json_file: Path | None = None

    def as_text(self) -> str:
        """For the process that measures a part."""
        return json.dumps({**asdict(self), "json_file": None})


_DEFAULTS = Options()


def from_text(text: str) -> Options:
    return Options(**json.loads(text))


def from_arguments(arguments: Sequence[str]) -> Options:
    """Read the command line; exits with a usage message where it is wrong."""
    parser = argparse.ArgumentParser(prog="make bench ARGS='…'", description=__doc__)
    add = parser.add_argument
    add("--only", dest="parts", type=_parts, default=PARTS, metavar="PART,…", help=f"some of {', '.join(PARTS)}")
    add("--people", type=_positive, default=_DEFAULTS.people, help="lines of the group that is frozen and counted")
    add("--messages", type=_positive, default=_DEFAULTS.messages, help="messages that each engine sends in a round")
    add("--numbers", type=_positive, default=_DEFAULTS.numbers, help="numbers over which the product spreads them")
    add("--serial", type=_positive, default=_DEFAULTS.serial, help="paired numbers of the part serial")
    add("--paced", type=_positive, default=_DEFAULTS.paced, help="numbers of the largest step of the part lanes")
    add("--seconds", type=float, default=_DEFAULTS.seconds, help="length of a round of webhooks")
    add("--rounds", type=_positive, default=_DEFAULTS.rounds, help="rounds of each; their medians are compared")
    add("--json", dest="json_file", type=Path, metavar="FILE", help="write everything that was measured here too")
    return Options(**vars(parser.parse_args(arguments)))


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := [name for name in chosen if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    return chosen


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
