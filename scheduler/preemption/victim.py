"""One unit that has been evicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..model.task import Task
from ..reasons import Protection
from .eligibility import EligibleUnit
from .victim_set import VictimOption


@dataclass(slots=True, frozen=True, eq=False)
class Victim:
    """A unit that has been evicted, and what it was chosen as.

    ``preemptor`` is the task that it went for; ``judge`` tells what stands against evicting some tasks, as one unit,
    for that task.
    """

    verdict: EligibleUnit
    option: VictimOption
    preemptor: Task
    judge: Callable[[Task, Sequence[Task]], Protection | None]

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.verdict.unit.tasks

    def objection(self, tasks: Sequence[Task]) -> Protection | None:
        """What stands against evicting these tasks as one unit for the preemptor, which is to be pending."""
        return self.judge(self.preemptor, tasks)

    def less(self, back: frozenset[str]) -> Victim:
        """The same without the tasks of these keys, which stay."""
        unit = self.verdict.unit
        left = tuple(task for task in unit.tasks if task.key not in back)
        return replace(self, verdict=replace(self.verdict, unit=replace(unit, tasks=left)))
