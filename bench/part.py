"""`python -m bench.part NAME OPTIONS`: measure one part against the services of the environment; JSON on stdout."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict

import django

from bench import options


def main() -> None:
    name, text = sys.argv[1:]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broadcast_project.settings")
    django.setup()
    from permissions import isolation
    from permissions.isolation import Sweep

    part = importlib.import_module(f"bench.parts.{name}")
    with isolation.across_tenants(Sweep.COMMAND, "bench"):
        figures = part.run(options.from_text(text))
    sys.stdout.write(json.dumps([asdict(figure) for figure in figures]) + "\n")


if __name__ == "__main__":
    main()
