"""List the faults that exploration finds, which runs random scenarios in virtual time and judges them.

A fault counts as found at the first finding that the scheduler without the fault does not have (docs/explore.md).
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from schedspec.lab.explore import rounds
from schedspec.lab.reduce.written import known_policies
from schedspec.scheduler.live import loop
from schedspec.virtual import cycles
from tests.test_the_tests.faults import FAULTS

GOAL = 0.9
"""The fraction of the faults that exploration has to find."""


@dataclass(frozen=True)
class Explored:
    """The result of exploring with one fault."""

    fault: str
    finding: str
    """The first finding; empty if there was none."""
    seed: int
    """The seed of the finding; without a finding, the number of seeds."""
    seconds: float
    """CPU time."""


def run_all(names: Iterable[str], jobs: int, minutes: float) -> Iterator[Explored]:
    """Explore each fault in a separate process, for at most `minutes` of CPU time; yield the results in order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        yield from pool.map(partial(_explore, minutes=minutes), names)


def _explore(fault: str, minutes: float) -> Explored:
    FAULTS[fault].inject()
    cycles.decide = loop.decide  # so that a fault of the loop's decisions takes effect in the simulation too
    begun = time.process_time()

    def next_round(so_far: rounds.Explored) -> int:
        return 0 if so_far.broken or time.process_time() - begun > minutes * 60 else rounds.ROUND

    found = rounds.explore(1, rounds.Processes(known_policies(), 1), next_round, frozenset())
    seconds = time.process_time() - begun
    if not found.broken:
        return Explored(fault, "", found.seeds, seconds)
    name, first = min(found.broken.items(), key=lambda pair: pair[1].seed)
    return Explored(fault, name, first.seed, seconds)


def report(found: Iterable[Explored], out: TextIO) -> bool:
    """Print a row for each fault, and the number of faults found. Return True if the number reaches the goal."""
    print("Faults, and how exploration finds them", file=out)
    print(f"{'fault':24} {'seed':>6} {'CPU s':>6}  found by", file=out)
    is_found = []
    for row in found:
        print(f"{row.fault:24} {row.seed:6} {row.seconds:6.0f}  {row.finding or 'NOTHING'}", file=out, flush=True)
        is_found.append(bool(row.finding))
    print(f"\n{sum(is_found)} of {len(is_found)} found; the goal is {GOAL:.0%}", file=out)
    return sum(is_found) >= GOAL * len(is_found)
