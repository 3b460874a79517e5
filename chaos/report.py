"""A run in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from chaos.options import Options
from chaos.verdict import Verdict

if TYPE_CHECKING:
    from chaos.run import Run

Rows = list[tuple[str, str]]


def rows(options: Options, run: Run, found: Verdict) -> Rows:
    """(what, how much), in the order of the story: what was done, what left, what became of it."""
    deaths = Counter(death.cause for death in run.herd.deaths)
    points = {cause: number for cause, number in deaths.items() if cause != "killed" and not cause.startswith("exit")}
    struck = [death for death in run.herd.deaths if not death.cause.startswith("exit")]
    by_role = Counter(death.name.rstrip("0123456789") for death in struck)
    alone = Counter(f"{death.name} ({death.cause})" for death in run.herd.deaths if death.cause.startswith("exit"))
    told: Rows = [
        ("seed", str(options.seed)),
        ("gateway's engine", options.engine),
        ("seconds under attack", f"{run.seconds:.0f}"),
        ("kills", str(run.kills)),
        ("… of processes", _words(by_role)),
        ("… at a named fault point", f"{sum(points.values())} ({_words(points)})"),
        ("… of PostgreSQL, immediate", str(run.postgres)),
        ("… of the broker, all data lost", str(run.broker)),
        ("processes that ended by themselves", _words(alone) or "none"),
        ("processes stopped", str(len(run.herd.stops))),
        ("faults of the gateway", _words(run.weather.set)),
        ("broadcasts", str(run.broadcasts)),
        ("people", str(found.people)),
        ("messages that left", str(found.messages)),
        ("outcomes", _words(found.statuses)),
        ("doubled", str(len(found.doubled))),
        ("lost", str(len(found.lost))),
        ("early", f"{len(found.early)} (least gap {found.least_gap:.3f} s)"),
        ("in doubt, by cause", _words(found.doubts) or "none"),
        ("in doubt, unexplained", str(len(found.unexplained))),
        ("verify_broadcast --all", "no breach" if not found.breaches else f"{len(found.breaches)} breaches"),
    ]
    return told


def table(told: Rows) -> str:
    width = max(len(what) for what, _much in told)
    return "\n".join(f"{what:<{width}}  {much}" for what, much in told)


def markdown(told: Rows) -> str:
    return "\n".join(["| what | how much |", "|---|---|", *(f"| {what} | {much} |" for what, much in told)])


def breaches(found: Verdict) -> Iterable[str]:
    """Each broken promise by its name, the first of many."""
    for name in ("doubled", "lost", "early", "unexplained", "breaches"):
        for line in getattr(found, name)[:20]:
            yield f"{name}: {line}"


def as_json(options: Options, told: Rows, found: Verdict) -> dict[str, Any]:
    return {
        "seed": options.seed,
        "figures": dict(told),
        "clean": found.is_clean,
        "statuses": dict(found.statuses),
        "doubts": dict(found.doubts),
        "breaches": list(breaches(found)),
    }


def _words(counts: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
