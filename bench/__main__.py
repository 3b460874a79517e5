"""`python -m bench`: start services, measure each part in a process of its own, print ratios.

Ends with 1 where a ratio is below what is promised, and with 2 where something fast was wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import figures, machine
from bench.figures import Figure
from bench.options import Options, from_arguments
from broadcast_project.demo.stage import Stage
from broadcast_project.embedded import STATE, AlreadyRunningError, Embedded
from broadcast_project.supervisor import product

ROOT = Path(__file__).resolve().parents[1]
# The paces off, and every ceiling out of the way: what is left is what the machinery itself costs.
UNPACED = {
    "PACE_SCALE": "0.000001",
    "SEND_WORKER_RATE": "100000/s",
    "API_REQUESTS_PER_MINUTE": "1000000",
    "DISPATCH_TICK_SECONDS": "0.02",
    "LOG_LEVEL": "ERROR",
}
# With the adapters of bench.adapters: numbers of theirs are made without pairing a phone.
# Nor does beat ask after sessions that no one has configured as it would.
_PLAIN = {"DJANGO_SETTINGS_MODULE": "bench.numbers_settings", "BEAT_SECONDS": "3600"}
_WITH_PROCESSES: dict[str, dict[str, str]] = {
    "engine": {},
    "slices": _PLAIN,
    "lanes": _PLAIN,
    "serial": _PLAIN,
    "memory": _PLAIN,
}
_AT_ONCE = 16


def main() -> int:
    options = from_arguments(sys.argv[1:])
    found: list[Figure] = []
    started = time.monotonic()
    try:
        for name, environment in _environments(options):
            _say(f"{name} …")
            found += _measure(name, options, environment)
    except subprocess.CalledProcessError as failed:
        # Its own words stand above, on stderr; these are the product's.
        sys.stderr.write("".join(f"{line}\n" for line in _last_lines))
        return 2 if failed.returncode else 1
    _say(figures.table(found))
    here = machine.describe()
    took = time.monotonic() - started
    _say(f"\n{here['cores']:.0f} cores, {here['memory_gib']} GiB, load {here['load']}, {took:.0f} s")
    if options.json_file is not None:
        options.json_file.write_text(json.dumps(_as_json(options, here, found), indent=2, ensure_ascii=False) + "\n")
    return 1 if any(figure.is_missed for figure in found) else 0


def _environments(options: Options) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each part with the environment in which it runs; services live as long as the parts that need them."""
    alone = [name for name in options.parts if name not in _WITH_PROCESSES]
    if alone:
        with _services() as environment:
            for name in alone:
                yield name, environment
    for name in options.parts:
        if name in _WITH_PROCESSES:
            settings = UNPACED | _WITH_PROCESSES[name]
            with Stage(name="bench", log=_remember, settings=settings, simulator=_SIMULATOR) as stage:
                yield name, stage.env


_last_lines: deque[str] = deque(maxlen=100)


def _remember(process: str, line: str) -> None:
    _last_lines.append(f"{process} | {line}")


_SIMULATOR = ("--seed", "1", "--time-scale", "0.05")


@contextmanager
def _services() -> Iterator[dict[str, str]]:
    """A database and a broker with nothing in them and no process of the product beside."""
    services = _first_free()
    try:
        addresses = services.addresses
        environment = {
            **os.environ,
            **UNPACED,
            "DATABASE_URL": addresses.database_url,
            "REDIS_URL": addresses.redis_url,
            "SECRET_KEY": "bench" * 12,
            "FIELD_ENCRYPTION_KEYS": "bench" * 12,
        }
        migrate = product.manage("migrate_locked", "--verbosity", "0")
        subprocess.run(migrate, env=environment, check=True, stdout=sys.stderr)  # noqa: S603 - our own command
        yield environment
    finally:
        services.stop()


def _first_free() -> Embedded:
    for number in range(1, _AT_ONCE + 1):
        services = Embedded(STATE, name=f"bench-data-{number}", durable=False)
        try:
            services.start()
        except AlreadyRunningError:
            continue
        return services
    raise SystemExit(f"{_AT_ONCE} benchmarks of this checkout run already")


def _measure(name: str, options: Options, environment: Mapping[str, str]) -> list[Figure]:
    command = (sys.executable, "-m", "bench.part", name, options.as_text())
    done = subprocess.run(command, env=dict(environment), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - our own command
    return [Figure(**figure) for figure in json.loads(done.stdout.splitlines()[-1])]


def _as_json(options: Options, here: Mapping[str, float], found: list[Figure]) -> dict[str, Any]:
    return {
        "machine": dict(here),
        "options": json.loads(options.as_text()),
        "figures": [{**asdict(figure), "ratio": round(figure.ratio, 3)} for figure in found],
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
