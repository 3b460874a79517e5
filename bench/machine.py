"""The machine, and who used how much of its processors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

import psutil

# A process belongs to the first of these that its command line holds, else to its parent's.
_ROLES = {
    "bench.usual.worker": "usual worker",
    "bench.usual.wsgi": "bare web",
    "bench.usual": "bench",
    "simulator": "simulator",
    "granian": "web",
    "run_dispatcher": "dispatcher",
    " worker ": "worker",
    " beat ": "beat",
    "valkey-server": "valkey",
    "/postgres": "postgres",
    "bench.part": "bench",
}


def describe() -> dict[str, float]:
    """Cores, memory in GiB, and the load of the last minute: what else runs belongs to a figure."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def processor_seconds(root: int) -> dict[str, float]:
    """Seconds of processor time by role, of a process and all that descend from it, the ended ones among them."""
    used: dict[str, float] = {}
    for role, process in _family(psutil.Process(root), "bench"):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            # A child that has ended and was waited for is in its parent's account.
            spent = times.user + times.system + times.children_user + times.children_system
            used[role] = used.get(role, 0.0) + spent
    return used


def spent(before: Mapping[str, float], after: Mapping[str, float], work: int) -> dict[str, float]:
    """Milliseconds a unit of work between two readings; what used next to nothing is left out."""
    each = {role: (seconds - before.get(role, 0.0)) * 1000 / work for role, seconds in after.items()}
    return {role: round(cost, 3) for role, cost in each.items() if cost >= 0.005}


def resident_mib(root: int) -> dict[str, float]:
    """Memory of the processes that descend from one, by role: the sum of what each holds in RAM, MiB."""
    held: dict[str, float] = {}
    for role, process in _family(psutil.Process(root), "bench"):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            held[role] = held.get(role, 0.0) + process.memory_info().rss / 2**20
    return held


def _family(process: psutil.Process, inherited: str) -> Iterator[tuple[str, psutil.Process]]:
    """A process and all that descend from it, each with its role."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        command = " ".join(process.cmdline())
        role = next((role for mark, role in _ROLES.items() if mark in command), inherited)
        yield role, process
        for child in process.children():
            yield from _family(child, role)
