"""A figure: a line of the table, with the measured value and its goal."""

from __future__ import annotations

from dataclasses import dataclass


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
