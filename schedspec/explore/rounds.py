"""Run many seeds in rounds, on several processes. The result does not depend on the number of processes.

1. Each round judges `ROUND` seeds. A seed may change a case that reached something new in an earlier round.
2. After a round, the results of its seeds are merged in the order of seeds.
3. The next round's parents are the cases that reached something new, in the order of seeds.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .. import distribution
from .judge import Finding, Judged, judge

ROUND = 200
"""Seeds of a round."""
_CHUNK = 10
"""Seeds that a process gets at a time."""
_MOST_PARENTS = 400


@dataclass(frozen=True, slots=True)
class Broken:
    """A finding, and the first seed that showed it."""

    seed: int
    finding: Finding


@dataclass(slots=True)
class Explored:
    """The results of a run so far."""

    seeds: int = 0
    reached: set[str] = field(default_factory=set)
    broken: dict[str, Broken] = field(default_factory=dict)
    """The first of each signature."""
    times: dict[str, int] = field(default_factory=dict)
    """The number of seeds with each signature."""

    def coverage(self) -> Iterator[str]:
        """Yield which part of the space was reached, and which was not."""
        space: Mapping[str, frozenset[str]] = distribution.load("scheduler.explore").SPACE
        for kind, names in space.items():
            missing = sorted(name for name in names if f"{kind} {name}" not in self.reached)
            rest = f"; not {', '.join(missing)}" if missing else ""
            yield f"{kind}: {len(names) - len(missing)} of {len(names)}{rest}"


def explore(
    first: int, policies: Mapping[str, str], jobs: int, budget: Callable[[Explored], int], without: frozenset[str]
) -> Explored:
    """Judge seeds from `first` on.

    Args:
        first: The first seed.
        policies: Texts of the policies that sentences can name, by name.
        jobs: Number of processes; 1: this one.
        budget: Returns, before each round, how many seeds it may have; 0 ends the run.
        without: Monitors and promises that do not judge.
    """
    found = Explored()
    parents: list[Any] = []
    pool = _pool(jobs) if jobs > 1 else None
    try:
        while number := min(budget(found), ROUND):
            begins = first + found.seeds
            seeds = [
                (seed, parents[seed % len(parents)] if parents else None) for seed in range(begins, begins + number)
            ]
            one = partial(_one, policies=policies)
            judged = map(one, seeds) if pool is None else pool.map(one, seeds, chunksize=_CHUNK)
            for (seed, _), (case, judgement) in zip(seeds, judged, strict=True):
                _merge(found, seed, judgement, without)
                if not judgement.reached <= found.reached:
                    found.reached |= judgement.reached
                    parents.append(case)
            parents = parents[-_MOST_PARENTS:]
            found.seeds += number
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    return found


def _merge(found: Explored, seed: int, judged: Judged, without: frozenset[str]) -> None:
    for finding in judged.findings:
        if finding.name.partition(":")[0] not in without:
            found.broken.setdefault(finding.name, Broken(seed, finding))
            found.times[finding.name] = found.times.get(finding.name, 0) + 1


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run


def _one(given: tuple[int, Any], policies: Mapping[str, str]) -> tuple[Any, Judged]:
    seed, parent = given
    room = distribution.load("scheduler.explore")
    case = room.generate(room.Draw(seed, policies, parent))
    return case, judge(case)
