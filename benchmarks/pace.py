"""Measure the current speed of the machine: the CPU time of a fixed piece of work.

If two runs have the same pace, their other figures in seconds can be compared.
"""

from __future__ import annotations

import time

from benchmarks.figure import Figure

_STEPS = 1_000_000


def pace() -> Figure:
    """Return the best of three measurements, so that other work on the machine has little effect."""
    took = []
    for _ in range(3):
        started = time.process_time()
        sum(number * number for number in range(_STEPS))
        took.append(time.process_time() - started)
    return Figure("pace: CPU of a fixed piece of work, now", min(took) * 1000, "ms")
