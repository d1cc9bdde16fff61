"""What goes together: spare tasks one by one, the rest of a gang as a whole.

The one rule: no gang is left in part. A task above the gang's minimum (and its role's) may go alone; any other only
with all tasks of its gang that hold room, on whatever nodes. Where the policy gives the gang plugin no say, every
task may go alone. A gang that says its disruption mode goes as that says, whoever has a say: pod by pod, or as a whole,
with its spare tasks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..framework.statement import Statement
from ..model.job import DisruptionMode, Job
from ..model.task import HOLDING, Task, TaskStatus

READY = HOLDING | TaskStatus.SUCCEEDED
GANG = "gang"
"""The plugin whose say makes gangs units."""


@dataclass(slots=True, frozen=True, eq=False)
class Unit:
    """Victims that go together, or not at all.

    ``breaks``: the gang stops by it; ``limits`` as in :class:`~.cover.VictimOption`.
    """

    job: Job
    tasks: tuple[Task, ...]
    whole: bool = False
    breaks: bool = False
    limits: tuple[tuple[Any, int], ...] = ()


def spare_tasks(job: Job) -> int:
    """How many of its tasks the job can lose and go on."""
    return max(job.ready - job.min_available, 0)


def spare_of_role(job: Job, role: str) -> int | None:
    """How many tasks of a role the job can lose; None if the role has no minimum that binds."""
    minimum = job.binding_roles.get(role)
    if minimum is None:
        return None
    return max(sum(task.role == role for task in job.having(READY)) - minimum, 0)


def single(job: Job, task: Task, *, gangs: bool) -> Unit | None:
    """The task as a victim of its own, or None if its gang cannot spare it.

    ``gangs``: whether the gang plugin has a say.
    """
    if job.disruption is DisruptionMode.GROUP:
        return None
    spare = spare_tasks(job)
    if not gangs or job.disruption is DisruptionMode.POD:
        return Unit(job, (task,), breaks=job.ready == job.min_available)
    of_role = spare_of_role(job, task.role)
    if spare == 0 or of_role == 0:
        return None
    limits: list[tuple[Any, int]] = [((job.key, None), spare)]
    if of_role is not None:
        limits.append(((job.key, task.role), of_role))
    return Unit(job, (task,), limits=tuple(limits))


def goes_whole(job: Job, *, gangs: bool) -> bool:
    """Whether the job may be a victim as a whole. ``gangs`` as in :func:`single`."""
    if job.disruption is not None:
        return job.disruption is DisruptionMode.GROUP
    return gangs and job.min_available > 0


def may_keep_members(job: Job) -> bool:
    """Whether members that nobody needs may stay where a gang goes as a whole and can go on with them."""
    return job.disruption is not DisruptionMode.GROUP


def runs_on(job: Job) -> bool:
    """Whether what the job holds is enough to go on, by its minimum and by those of its roles."""
    held = Counter(task.role for task in job.having(READY))
    return job.ready >= job.min_available and all(held[role] >= least for role, least in job.binding_roles.items())


def members_that_stay(job: Job) -> int:
    """How many of its tasks a gang that goes as a whole keeps, because nobody needs their room."""
    return job.count(HOLDING)


def is_still_whole(unit: Unit) -> bool:
    """Whether the unit is what it was when it was made: all of it there, and spare if it was spare."""
    if not all(task.status & HOLDING for task in unit.tasks):
        return False
    return not unit.limits or single(unit.job, unit.tasks[0], gangs=True) is not None


def give_up_waiting(job: Job, statement: Statement) -> None:
    """Release the room that tasks of a job wait for which is about to go as a whole: they cannot start without it."""
    for task in job.having(TaskStatus.PIPELINED):
        statement.release(task)


def whole_gang(job: Job) -> Unit:
    """All tasks of the job that hold room."""
    return Unit(job, tuple(job.having(HOLDING)), whole=True, breaks=True)
