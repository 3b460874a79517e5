"""What was measured: pairs of rates, their ratio, and what each unit of work cost in processor time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class WrongResult(Exception):
    """It was fast, and wrong: what was measured does not count."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One comparison. Rates in ``unit`` a second, medians of the rounds; sizes in ``unit`` where it ``is_rate`` not.

    ``floor`` and ``ceiling``: the least and the greatest ratio that the product promises. ``cpu``: milliseconds of
    processor time for one unit, by process. ``checked``: what was found to be right in the same run.
    """

    what: str
    unit: str
    ours: float
    against: str
    theirs: float
    floor: float | None = None
    ceiling: float | None = None
    is_rate: bool = True
    cpu: Mapping[str, float] = field(default_factory=dict)
    checked: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def is_missed(self) -> bool:
        too_low = self.floor is not None and self.ratio < self.floor
        return too_low or (self.ceiling is not None and self.ratio > self.ceiling)

    @property
    def promise(self) -> str:
        """The bounds of the ratio, and whether they were missed; empty where nothing is promised."""
        bounds = [f"{sign}{bound:.2f}" for sign, bound in (("", self.floor), ("≤ ", self.ceiling)) if bound is not None]
        return " ".join([*bounds, "MISSED"] if self.is_missed else bounds)

    def value(self, amount: float) -> str:
        """An amount as people read it, with its unit."""
        return f"{_number(amount)} {self.unit}{'/s' if self.is_rate else ''}"


def median_rates(work: int, seconds: Sequence[float]) -> float:
    """So much work a second, by the median of several rounds."""
    return work / statistics.median(seconds)


def by_turns(rounds: int, contenders: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run each contender once a round, so that whatever else the machine does meets all; what each returned."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        # Each is first as often as the others: the second finds warm pages, the first an idle disk.
        names = list(contenders)
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            found[name].append(contenders[name]())
    return found


def table(figures: Sequence[Figure]) -> str:
    """For people: one line a figure, and under it what it cost."""
    head = ("measured", "product", "against", "", "ratio", "promised")
    rows = [
        (
            figure.what,
            figure.value(figure.ours),
            figure.against,
            figure.value(figure.theirs),
            f"{figure.ratio:.2f}",
            figure.promise,
        )
        for figure in figures
    ]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [note for figure in figures for note in _notes(figure)]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _notes(figure: Figure) -> list[str]:
    notes = []
    if figure.cpu:
        parts = ", ".join(f"{name} {cost:.2f}" for name, cost in sorted(figure.cpu.items(), key=lambda item: -item[1]))
        notes.append(
            f"{figure.what}: ms of processor a {figure.unit}: {parts}; together {sum(figure.cpu.values()):.2f}"
        )
    if figure.checked:
        notes.append(f"{figure.what}: {figure.checked}")
    return notes


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
