"""Compare the policies of a sweep: ranges of each metric, and paired differences of runs that had the same load.

Two runs of one load with two policies differ by the policies only. The difference of each pair says more than the
ranges of both policies, which are mostly the spread of the loads.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....report import files, html
from . import metrics
from .world import ends

WIDTH = 300.0
"""Width of the picture of a metric's differences."""
_MARGIN = 8.0


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """The values of one metric, one for each load; or their differences between two policies."""

    label: str
    path: metrics.Path
    by_load: Mapping[str, float]

    @property
    def parts(self) -> tuple[float, float, float]:
        """The least, the median and the largest value."""
        found = self.by_load.values()
        return min(found), statistics.median(found), max(found)

    def text(self, write: Callable[[metrics.Path, float], str] = metrics.text) -> tuple[str, str, str]:
        """Format least, median and most; differences with `metrics.signed`."""
        least, median, most = self.parts
        return write(self.path, least), write(self.path, median), write(self.path, most)

    def mark(self, load: str) -> str:
        """Return whether one difference is `better` or `worse`."""
        return metrics.mark(self.path, 0.0, self.by_load[load])

    @property
    def verdict(self) -> str:
        """`better` or `worse` if no load contradicts it, `mixed` if loads contradict each other, empty if all equal."""
        marks = {self.mark(load) for load in self.by_load} - {""}
        return "mixed" if len(marks) > 1 else next(iter(marks), "")

    def count(self, mark: str) -> int:
        """Return the number of loads with which the difference is `better` or `worse`."""
        return sum(self.mark(load) == mark for load in self.by_load)

    @property
    def dots(self) -> tuple[float, list[tuple[float, str, str]]]:
        """The position of no difference, and of each difference with its mark and text, in a picture of `WIDTH`."""
        least, _, most = self.parts
        low, high = min(least, 0.0), max(most, 0.0)
        scale = (WIDTH - 2 * _MARGIN) / ((high - low) or 1.0)
        found = [
            (_MARGIN + (value - low) * scale, self.mark(load), f"{load}: {metrics.signed(self.path, value)}")
            for load, value in self.by_load.items()
        ]
        return _MARGIN - low * scale, found


@dataclass(frozen=True, slots=True)
class Sweep:
    """The metrics of all complete runs. The other policies are compared with the first one."""

    runs: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Policy → load → metrics."""
    loads: Sequence[str]
    """The loads in order: `seed 3`, or their files."""
    incomplete: Sequence[Path]
    """The results that were left out: of runs that were interrupted or failed."""

    @property
    def first(self) -> str:
        """The policy with which the others are compared."""
        return next(iter(self.runs), "")

    @property
    def others(self) -> list[str]:
        """The policies that are compared with the first one."""
        return [policy for policy in self.runs if policy != self.first]

    def ranges(self, policy: str) -> list[MetricSeries]:
        return self._values(lambda load, path: metrics.value(self.runs[policy].get(load, {}), path))

    def differences(self, policy: str) -> list[MetricSeries]:
        """Return the differences of a policy from the first one, of the loads that both ran."""

        def difference(load: str, path: metrics.Path) -> float | None:
            was, now = (metrics.value(self.runs[it].get(load, {}), path) for it in (self.first, policy))
            return None if was is None or now is None else now - was

        return self._values(difference)

    def _values(self, value: Callable[[str, metrics.Path], float | None]) -> list[MetricSeries]:
        found = []
        for label, path in metrics.OF_ALL:
            values = {load: it for load in self.loads if (it := value(load, path)) is not None}
            if values:
                found.append(MetricSeries(label, path, values))
        return found

    def verdicts(self, policy: str) -> dict[str, list[MetricSeries]]:
        """Return `better`, `worse` and `mixed` → the metrics by which a policy is, compared with the first one."""
        found: dict[str, list[MetricSeries]] = {"better": [], "worse": [], "mixed": []}
        for values in self.differences(policy):
            if values.verdict:
                found[values.verdict].append(values)
        return found


def read(results: Iterable[Path]) -> Sweep:
    """Read the result files of a sweep; the policy of the first file comes first. Raises the errors of the files."""
    complete, incomplete = [], []
    for path in results:
        run, end = ends(path)
        if run is None or end is None or end.interrupted:
            incomplete.append(path)
        else:
            complete.append((run, end.metrics))
    seeds = {run.load: f"seed {run.seed}" for run, _ in complete if run.seed is not None}
    if len({*seeds.values()}) < len({run.load for run, _ in complete}):
        seeds = {}  # several loads, or a load without seeds
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for run, values in complete:
        found.setdefault(run.policy, {})[seeds.get(run.load, run.load)] = values
    ordered = sorted((run.seed or 0, run.load) for run, _ in complete)
    return Sweep(found, list(dict.fromkeys(seeds.get(load, load) for _, load in ordered)), incomplete)


def write(sweep: Sweep, path: Path) -> Path:
    """Write the page. Raises OSError."""
    files.make_folder(path.parent, private=False)
    text = html.template("sweep.html.j2").render(sweep=sweep, signed=metrics.signed, width=WIDTH)
    return files.write(path, text, private=False)
