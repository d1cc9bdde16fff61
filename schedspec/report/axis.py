"""Map time to pixels: spans with events are wide, long spans without events are shortened and marked.

Decisions take milliseconds, waits take seconds; on a linear axis a bind and an eviction fall into one pixel.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

_LEAST = 0.02
"""Spans of up to this many seconds are always shown at full length."""
_MARKED = 4.0
"""A span is marked as shortened if its width is shortened by more than this factor."""
_SHARE = 0.2
"""Maximum part of the axis, approximately, for a span without events."""
_TICK = 52.0
"""Minimum distance of ticks in pixels."""
_FINEST = 60.0
"""Maximum number of ticks of one step length on the whole axis."""
_NICE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """A span of the axis, in seconds and pixels; `shortened` if its width is much less than its duration."""

    began: float
    ended: float
    left: float
    right: float
    shortened: bool


class Axis:
    """Maps seconds to pixels between `left` and `right`: monotonic and piecewise linear."""

    def __init__(self, times: Iterable[float], end: float, left: float, right: float) -> None:
        points = sorted({0.0, end, *(t for t in times if 0.0 <= t <= end)})
        gaps = [(a, b, b - a) for a, b in pairwise(points)] or [(0.0, max(end, 1.0), 1.0)]
        full = max(_LEAST, 3.0 * statistics.median(gap for _, _, gap in gaps))
        weights = [gap if gap <= full else full * (1.0 + 0.6 * math.log(gap / full)) for _, _, gap in gaps]
        most = max(full, _SHARE * sum(weights))
        weights = [
            weight if gap <= full else min(weight, most) for (_, _, gap), weight in zip(gaps, weights, strict=True)
        ]
        scale = (right - left) / sum(weights)
        self.stretches: list[AxisSpan] = []
        x = left
        for (a, b, gap), weight in zip(gaps, weights, strict=True):
            wide = weight * scale
            short = gap > _MARKED * weight and wide >= 10.0
            last = self.stretches[-1] if self.stretches else None
            straight = math.isclose(gap, weight)
            if last is not None and straight and _is_straight(last, scale):
                self.stretches[-1] = AxisSpan(last.began, b, last.left, x + wide, shortened=False)
            else:
                self.stretches.append(AxisSpan(a, b, x, x + wide, short))
            x += wide
        self._began = [stretch.began for stretch in self.stretches]
        self.left, self.right, self.end = left, right, points[-1]

    def x(self, t: float) -> float:
        stretch = self.stretches[max(0, bisect.bisect_right(self._began, t) - 1)]
        part = (min(max(t, stretch.began), stretch.ended) - stretch.began) / ((stretch.ended - stretch.began) or 1.0)
        return stretch.left + part * (stretch.right - stretch.left)

    def points(self) -> list[tuple[float, float]]:
        """Return the corner points (seconds, pixel) of the map, for conversion in both directions."""
        first = self.stretches[0]
        return [(first.began, first.left), *((stretch.ended, stretch.right) for stretch in self.stretches)]

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield pixels and texts of round times that fit; coarser steps first, so that rounder times win."""
        used = [self.left]
        yield self.left, "0"
        for step in reversed(_NICE):
            if step > self.end or step * _FINEST < self.end:
                continue
            for n in range(1, int(self.end / step) + 1):
                x = self.x(n * step)
                at = bisect.bisect(used, x)
                if all(abs(x - other) >= _TICK for other in used[max(0, at - 1) : at + 1]):
                    used.insert(at, x)
                    yield x, seconds(n * step)


def _is_straight(stretch: AxisSpan, scale: float) -> bool:
    return math.isclose(stretch.right - stretch.left, (stretch.ended - stretch.began) * scale, rel_tol=1e-6)


def seconds(value: float) -> str:
    """Return `0.25 s`, `1.2 s`, `2 min 5 s`: a duration rounded for a picture."""
    if value >= 60:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    return f"{value:.3f}".rstrip("0").rstrip(".") + " s"
