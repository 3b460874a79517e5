"""Holds embedded services in a process of its own, for tests to kill.

    python -m tests.services.owner STATE [keep]

Prints the two addresses as JSON, then stops when its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from broadcast_project.embedded import Embedded


def main(state: str, *keep: str) -> None:
    with Embedded(Path(state), durable=bool(keep)) as addresses:
        sys.stdout.write(json.dumps(asdict(addresses) | {"uid": os.geteuid()}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
