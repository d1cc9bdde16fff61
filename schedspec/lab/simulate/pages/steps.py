"""Represent amounts over time as step functions. Times are exact up to a number of changes, and rounded beyond it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Changes:
    """Changes of an amount, in any order."""

    def __init__(self) -> None:
        self._times, self._amounts = array("d"), array("d")

    def add(self, at: float, amount: float) -> None:
        self._times.append(at)
        self._amounts.append(amount)

    def steps(self, start: float, most: int, span: float) -> Steps:
        """Return the amount over time, in seconds after `start`.

        Args:
            start: The origin of times.
            most: With more changes than this, times are rounded up to multiples of `span / most`.
            span: The length of the run in seconds.
        """
        times, amounts = np.array(self._times) - start, np.array(self._amounts)
        times = np.round(times, 3)
        rounded = 0.0
        if len(np.unique(times)) > most:
            rounded = span / most
            times = np.ceil(times / rounded) * rounded
        order = np.argsort(times, kind="stable")
        times, amounts = times[order], amounts[order]
        distinct, first = np.unique(times, return_index=True)
        sums = np.add.reduceat(amounts, first) if len(first) else amounts
        changed = np.abs(sums) > 1e-9
        return Steps(distinct[changed], np.cumsum(sums)[changed], rounded)


@dataclass(frozen=True, slots=True)
class Steps:
    """An amount over time: `values[i]` from `times[i]` to `times[i + 1]`; 0 before the first."""

    times: Floats
    values: Floats
    rounded: float = 0.0
    """Seconds to which times are rounded; 0 if they are exact."""

    @classmethod
    def of(cls, times: Sequence[float], values: Sequence[float]) -> Steps:
        """Return the steps of samples. Equal neighbouring samples are one step."""
        at, amounts = np.array(times, dtype=float), np.array(values, dtype=float)
        keep = np.concatenate(([True], np.diff(amounts) != 0)) if len(amounts) else np.zeros(0, bool)
        return cls(np.round(at[keep], 3), amounts[keep])

    def means(self, edges: Floats) -> Floats:
        """Return the mean between each two neighbouring edges."""
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        last = max(float(edges[-1]), float(self.times[-1])) + 1.0
        times = np.append(self.times, last)
        integral = np.concatenate(([0.0], np.cumsum(np.diff(times) * self.values)))
        found: Floats = np.diff(np.interp(edges, times, integral)) / np.diff(edges)
        return found

    def parting(self, other: Steps) -> float | None:
        """Return the first time at which two amounts differ; None if they never do."""
        times = np.union1d(self.times, other.times)
        apart = times[np.abs(self._at(times) - other._at(times)) > 1e-9]
        return float(apart[0]) if len(apart) else None

    def _at(self, times: Floats) -> Floats:
        found: Floats = np.append(0.0, self.values)[np.searchsorted(self.times, times, side="right")]
        return found

    def packed(self) -> dict[str, list[Any]]:
        """Return differences of times (milliseconds) and of values (thousandths): small whole numbers."""
        return {"t": _differences(self.times), "v": _differences(self.values)}


def _differences(values: Floats) -> list[Any]:
    found: list[Any] = np.diff(np.round(values * 1000).astype(np.int64), prepend=0).tolist()
    return found
