"""One unit that has been evicted."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.task import Task
from .eligibility import EligibleUnit
from .victim_set import VictimOption


@dataclass(slots=True, frozen=True, eq=False)
class Victim:
    """A unit that has been evicted, and what it was chosen as."""

    verdict: EligibleUnit
    option: VictimOption

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.verdict.unit.tasks
