"""Group running tasks into eviction units.

Tasks above a gang's minimum (and its role's minimum) are evicted one by one; the remaining tasks only together, on all
nodes. A plugin says how many tasks a job can lose (the hooks `reclaim_spare` and `preempt_spare`); under a policy
without such a plugin every task is evicted on its own. A gang that sets its disruption mode follows that mode under any
policy: pod by pod, or as a whole, including tasks above its minimum.

The one rule: an eviction leaves no gang below its minimum with running tasks.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ..framework.statement import Statement
from ..model.job import DisruptionMode, Job
from ..model.task import HOLDING, READY, Task, TaskStatus
from ..policy.hooks import Limits
from ..policy.tiers import Spares


class Unit(msgspec.Struct, frozen=True, eq=False):
    """Victims that are evicted together.

    `breaks`: the gang stops running by the eviction. For `limits` see `VictimOption`.
    """

    job: Job
    tasks: tuple[Task, ...]
    whole: bool = False
    breaks: bool = False
    limits: Limits = ()


def single(job: Job, task: Task, spares: Spares | None) -> Unit | None:
    """Return the task as a unit of its own; None if its gang cannot lose it.

    Args:
        job: the job of the task.
        task: the candidate.
        spares: the hook that limits such evictions; None within a job, which no limit protects from itself.
    """
    if job.disruption is DisruptionMode.GROUP:
        return None
    if not spares or not spares.entries or job.disruption is DisruptionMode.POD:
        return Unit(job, (task,), breaks=job.ready == job.min_available)
    limits = spares(job, task)
    return Unit(job, (task,), limits=limits) if all(number for _, number in limits) else None


def may_be_evicted_whole(job: Job, spares: Spares) -> bool:
    """Whether the job may be evicted as a whole."""
    if job.disruption is not None:
        return job.disruption is DisruptionMode.GROUP
    return bool(spares.entries) and job.min_available > 0


def may_keep_members(job: Job) -> bool:
    """Whether members that are not needed may be reprieved when the gang is evicted as a whole."""
    return job.disruption is not DisruptionMode.GROUP


def runs_on(job: Job) -> bool:
    """Whether what the job holds satisfies its minimum and those of its roles."""
    held = Counter(task.role for task in job.having(READY))
    return job.ready >= job.min_available and all(held[role] >= least for role, least in job.binding_roles.items())


def members_that_stay(job: Job) -> int:
    """Return how many tasks a gang that is evicted as a whole keeps, because nobody needs their room."""
    return job.count(HOLDING)


def is_still_whole(unit: Unit, spares: Spares) -> bool:
    """Whether the unit is unchanged since it was made: all tasks still run, and a spare task is still spare."""
    if not all(task.status & HOLDING for task in unit.tasks):
        return False
    return not unit.limits or single(unit.job, unit.tasks[0], spares) is not None


def give_up_waiting(job: Job, statement: Statement) -> None:
    """Release the room for which tasks of the job wait: the job is evicted as a whole and cannot start without it."""
    for task in job.having(TaskStatus.PIPELINED):
        statement.release(task)


def whole_gang(job: Job) -> Unit:
    """Return all tasks of the job that hold room, as one unit."""
    return Unit(job, job.holding, whole=True, breaks=True)
