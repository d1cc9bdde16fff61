"""Group running tasks into eviction units.

Tasks above a gang's minimum (and its role's minimum) are evicted one by one; the remaining tasks only together, on all
nodes. Plugins limit how many tasks a job can lose (the hooks `reclaim_spare` and `preempt_spare`); under a policy
without such a plugin every task is evicted on its own. A gang with a disruption mode follows that mode under any
policy: pod by pod, or as a whole, including tasks above its minimum.

The one rule: an eviction that plugins limit leaves no gang below its minimum with running tasks.
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

    `breaks`: the eviction makes the gang stop. For `limits` see `VictimOption`.
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
        spares: the hook that limits such evictions; None within a job, because a job may evict its own tasks freely.
    """
    if job.disruption is not None or not spares or not spares.entries:
        is_apart = job.disruption is not DisruptionMode.GROUP
        return Unit(job, (task,), breaks=job.ready == job.min_available) if is_apart else None
    limits = spares(job, task)
    for _, number in limits:  # a generator would cost as much as the limits: there are thousands of candidates
        if not number:
            return None
    return Unit(job, (task,), limits=limits)


def may_be_evicted_whole(job: Job, spares: Spares) -> bool:
    """Whether the job may be evicted as a whole."""
    if job.disruption is not None:
        return job.disruption is DisruptionMode.GROUP
    return bool(spares.entries) and job.min_available > 0


def may_keep_members(job: Job) -> bool:
    """Whether members may be reprieved when the gang is evicted as a whole and their eviction is not needed."""
    return job.disruption is not DisruptionMode.GROUP


def has_minimum(job: Job) -> bool:
    """Whether the job's ready tasks satisfy its minimum and the minimums of its roles."""
    held = Counter(task.role for task in job.having(READY))
    return job.ready >= job.min_available and all(held[role] >= least for role, least in job.binding_roles.items())


def remaining_members(job: Job) -> int:
    """Return how many tasks a gang that is evicted as a whole keeps, because their room is not needed."""
    return job.count(HOLDING)


def is_unchanged(unit: Unit, spares: Spares) -> bool:
    """Whether the unit is as it was at its creation: all tasks still hold capacity, and a spare task is still spare."""
    if not all(task.status & HOLDING for task in unit.tasks):
        return False
    return not unit.limits or single(unit.job, unit.tasks[0], spares) is not None


def release_waiting(job: Job, statement: Statement) -> None:
    """Release the room for which tasks of the job wait: a job that is evicted as a whole cannot start them."""
    for task in job.having(TaskStatus.PIPELINED):
        statement.release(task)


def whole_gang(job: Job) -> Unit:
    """Return all tasks of the job that hold capacity, as one unit."""
    return Unit(job, job.holding, whole=True, breaks=True)
