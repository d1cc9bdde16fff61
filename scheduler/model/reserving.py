"""Decide whether a job reserves capacity, and subtract its gated pods from the reservation.

A job reserves capacity from its admission until its pods hold what it needs. The sums kept between cycles and the queue
plugins share these functions, so that they agree; some plugins measure in whole cards (`Measure`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .job import Job, PodGroupPhase
from .resources import Resource, exceeded_part, total_of
from .task import HOLDING, Task, TaskStatus

Measure = Callable[[Task], Mapping[str, int]]
"""Returns the amounts that a task uses of quotas."""


def is_reserving(job: Job, phase: str) -> bool:
    """Whether a job in this phase reserves what it needs to start but does not hold yet."""
    return phase == PodGroupPhase.INQUEUE or (
        phase == PodGroupPhase.RUNNING and job.count(HOLDING) >= job.min_available
    )


def request_of(task: Task) -> Mapping[str, int]:
    """Return the task's request, without `pods`."""
    return task.request


def ungated(job: Job, amount: Resource, measure: Measure = request_of) -> Resource:
    """Return an amount minus the requests of the job's gated pods, at least zero."""
    if not job.gated:
        return amount
    waiting = job.by_status.get(TaskStatus.PENDING, {}).values()
    return exceeded_part(amount, total_of(measure(task) for task in waiting if task.gated))
