"""Measure the scheduler on a live cluster.

`python -m benchmarks.live` prints a table and writes `benchmarks/out/live.json`. Goals are ratios within one run, or
amounts on an idle machine; the figures `pace` show the machine's speed at each moment. Every measurement has a cluster
of its own, because rates fall as a cluster fills.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from benchmarks.figure import Figure, pace, report
from benchmarks.live_backlog import backlog
from benchmarks.live_compared import compared
from benchmarks.live_latency import one_pod
from benchmarks.live_reclaim import burst
from tests.support.live.api_objects import SIZE

NODES, GANGS = 1000, 250


def measure(part: int) -> Iterator[Figure]:
    """Yield the figures; backlogs and their clusters have 1/`part` of their size."""
    yield pace()
    yield from asyncio.run(backlog(NODES // part, GANGS // part))
    yield pace()
    yield from asyncio.run(one_pod(GANGS // part * SIZE))
    yield pace()
    yield from asyncio.run(compared(NODES // part, GANGS // part))
    yield pace()
    yield from asyncio.run(burst())
    yield pace()


if __name__ == "__main__":
    sys.exit(report(measure(*map(int, sys.argv[1:2] or ["1"])), "live"))
