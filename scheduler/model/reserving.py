"""Tell whether a job has reserved what it needs to start, and leave its gated pods out of that.

A job reserves from its admission until its pods hold what it needs. The sums that are kept between cycles and the queue
plugins agree by these functions; some of the plugins measure in whole cards (`Measure`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .job import Job, PodGroupPhase
from .resources import Resource, exceeded_part, total_of
from .task import HOLDING, Task, TaskStatus

Measure = Callable[[Task], Mapping[str, int]]
"""Returns the amounts that a task counts for in quotas."""


def is_reserving(job: Job, phase: str) -> bool:
    """Whether a job in this phase reserves what it needs to start and does not hold."""
    return phase == PodGroupPhase.INQUEUE or (
        phase == PodGroupPhase.RUNNING and job.count(HOLDING) >= job.min_available
    )


def request_of(task: Task) -> Mapping[str, int]:
    """Return the task's request, without `pods`."""
    return task.request


def ungated(job: Job, amount: Resource, measure: Measure = request_of) -> Resource:
    """Return an amount less what the job's gated pods request, at least zero."""
    if not job.gated:
        return amount
    waiting = job.by_status.get(TaskStatus.PENDING, {}).values()
    return exceeded_part(amount, total_of(measure(task) for task in waiting if task.gated))
