"""Run many seeds in rounds. The result does not depend on how the cases of a round are played.

1. Each round judges as many seeds as its player plays together. A seed may mutate a case that reached something new in
   an earlier round.
2. After a round, the results of its seeds are merged in the order of seeds.
3. The next round's parents are the cases that reached something new, in the order of seeds.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ...schedulers.pdeathsig import end_with_parent
from ..reduce.case import Case
from .generate import Draw, generate
from .judge import CaseFinding, CaseJudgement, judge
from .reach import SPACE
from .vocabulary import EVERYTHING, Vocabulary

ROUND = 200
"""Number of seeds in a round in virtual time."""
_CHUNK = 10
"""Number of seeds that a process gets at a time."""
_MAX_PARENTS = 400

Seed = tuple[int, Case | None]
"""A seed, and the case that it may mutate, or None."""


class Player(Protocol):
    """Plays and judges the cases of a round."""

    size: int

    def play(self, seeds: Sequence[Seed]) -> Iterable[tuple[Case, CaseJudgement]]:
        """Return the case of each seed, and the findings in it."""

    def close(self) -> None:
        """End what the player started."""


class Processes:
    """Plays cases in virtual time, on several processes."""

    size = ROUND

    def __init__(self, policies: Mapping[str, str], jobs: int, vocabulary: Vocabulary | None = None) -> None:
        self._one = partial(_one, policies=policies, vocabulary=vocabulary)
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(jobs, context, initializer=_begin) if jobs > 1 else None

    def play(self, seeds: Sequence[Seed]) -> Iterable[tuple[Case, CaseJudgement]]:
        if self._pool is None:
            return map(self._one, seeds)
        return self._pool.map(self._one, seeds, chunksize=_CHUNK)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Broken:
    """A finding, and the first seed that showed it."""

    seed: int
    finding: CaseFinding


@dataclass(slots=True)
class Explored:
    seeds: int = 0
    reached: set[str] = field(default_factory=set)
    broken: dict[str, Broken] = field(default_factory=dict)
    """The first finding of each signature."""
    times: dict[str, int] = field(default_factory=dict)
    """The number of seeds with each signature."""
    unjudged: dict[str, int] = field(default_factory=dict)
    """Why seeds were not judged → the number of these seeds."""

    def coverage(self, kinds: Collection[str] = ()) -> Iterator[str]:
        """Yield how much of each kind of situation was reached, and what was not; by default for all kinds."""
        for kind, names in SPACE.items():
            if kinds and kind not in kinds:
                continue
            missing = sorted(name for name in names if f"{kind} {name}" not in self.reached)
            unreached = f"; not {', '.join(missing)}" if missing else ""
            yield f"{kind}: {len(names) - len(missing)} of {len(names)}{unreached}"


def explore(first: int, player: Player, budget: Callable[[Explored], int], without: frozenset[str]) -> Explored:
    """Judge seeds from `first` on.

    Args:
        first: The first seed.
        player: Plays the cases; it is closed at the end.
        budget: Returns, before each round, the maximum number of its seeds; 0 ends the run.
        without: Monitors, promises and signatures that do not count.
    """
    found = Explored()
    parents: list[Case] = []
    try:
        while number := min(budget(found), player.size):
            begins = first + found.seeds
            seeds = [
                (seed, parents[seed % len(parents)] if parents else None) for seed in range(begins, begins + number)
            ]
            for (seed, _), (case, judgement) in zip(seeds, player.play(seeds), strict=True):
                _merge(found, seed, judgement, without)
                if not judgement.reached <= found.reached:
                    found.reached |= judgement.reached
                    parents.append(case)
            parents = parents[-_MAX_PARENTS:]
            found.seeds += number
    finally:
        player.close()
    return found


def _merge(found: Explored, seed: int, judged: CaseJudgement, without: frozenset[str]) -> None:
    if judged.unjudged:
        found.unjudged[judged.unjudged] = found.unjudged.get(judged.unjudged, 0) + 1
    for finding in judged.findings:
        if without.isdisjoint((finding.name, finding.name.partition(":")[0])):
            found.broken.setdefault(finding.name, Broken(seed, finding))
            found.times[finding.name] = found.times.get(finding.name, 0) + 1


def _begin() -> None:
    """Prepare a process of the pool: it ignores Ctrl-C and ends with its parent, also if the parent is killed."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(seed: Seed, policies: Mapping[str, str], vocabulary: Vocabulary | None) -> tuple[Case, CaseJudgement]:
    case = case_of(seed, policies, vocabulary)
    return case, judge(case)


def case_of(seed: Seed, policies: Mapping[str, str], vocabulary: Vocabulary | None = None) -> Case:
    """Return the case of a seed; `vocabulary` limits what the case may use."""
    number, parent = seed
    return generate(Draw(number, policies, parent, vocabulary or EVERYTHING))
