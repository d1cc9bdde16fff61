"""A figure: a line of the table, with the measured value and its goal; and the speed of the machine (`pace`)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True)
class Figure:
    """A measured value; without a `goal` it is only shown."""

    figure: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def ok(self) -> bool:
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    @property
    def line(self) -> str:
        goal = "" if self.goal is None else f"{'≥' if self.at_least else '≤'} {self.goal:g}"
        mark = "" if self.goal is None else "ok" if self.ok else "MISSED"
        return f"{self.figure:<90} {self.value:>10.6g} {self.unit:<4} {goal:<8} {mark}"

    @property
    def plain(self) -> dict[str, object]:
        return {"figure": self.figure, "value": self.value, "unit": self.unit, "goal": self.goal, "ok": self.ok}


def report(figures: Iterable[Figure], name: str) -> int:
    """Print figures as they are measured, and write them into `benchmarks/out`; return 1 if a goal is missed."""
    found = []
    for figure in figures:
        found.append(figure)
        print(figure.line, flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps([figure.plain for figure in found], indent=1) + "\n")
    return 0 if all(figure.ok for figure in found) else 1


_STEPS = 1_000_000


def pace() -> Figure:
    """Return the best of three measurements, so that other work on the machine has little effect."""
    took = []
    for _ in range(3):
        started = time.process_time()
        sum(number * number for number in range(_STEPS))
        took.append(time.process_time() - started)
    return Figure("pace: CPU of a fixed piece of work, now", min(took) * 1000, "ms")
