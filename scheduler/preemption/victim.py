"""One unit that has been evicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from ..model.task import Task
from ..reasons import Protection
from .eligibility import EligibleUnit
from .victim_set import VictimOption


@dataclass(slots=True, frozen=True, eq=False)
class Victim:
    """A unit that has been evicted, with the option that was chosen.

    `preemptor` is the task for which the unit was evicted; `judge` returns what protects some tasks, as one unit, from
    eviction for that task. `position` is the length of the cycle's change log right after the eviction: of two victims,
    the one with the smaller position was evicted first.
    """

    verdict: EligibleUnit
    option: VictimOption
    preemptor: Task
    judge: Callable[[Task, Sequence[Task]], Protection | None]
    position: int

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.verdict.unit.tasks

    def objection(self, tasks: Sequence[Task]) -> Protection | None:
        """Return what protects these tasks as one unit. The preemptor must be pending."""
        return self.judge(self.preemptor, tasks)

    def without(self, reprieved: frozenset[str]) -> Victim:
        """Return the victim without the tasks of these keys."""
        unit = self.verdict.unit
        left = tuple(task for task in unit.tasks if task.key not in reprieved)
        verdict = msgspec.structs.replace(self.verdict, unit=msgspec.structs.replace(unit, tasks=left))
        return replace(self, verdict=verdict)
