"""The observed state of one Job, and the counts of its pods.

Counts cover pods that are not deleted and not about to be deleted. All other pods count as `terminating`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...model import names
from ...model.objects import Pod
from ...model.task import index_of
from ..gang_job import ObservedGangJob
from ..runtime.objects import TaskSpec, VolcanoJob


class JobPhase(StrEnum):
    """Phases of a Job."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    FAILED = "Failed"


FINISHED = frozenset((JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED))
ENDING = {
    JobPhase.ABORTING: JobPhase.ABORTED,
    JobPhase.TERMINATING: JobPhase.TERMINATED,
    JobPhase.COMPLETING: JobPhase.COMPLETED,
}
"""Phases that wait for pods to terminate, and the phase after each."""
POD_FINISHED = frozenset(("Succeeded", "Failed"))


ObservedJob = ObservedGangJob[VolcanoJob]


def tasks_of(job: VolcanoJob) -> Iterator[TaskSpec]:
    """Yield the Job's tasks. A task without a name is called `default` and its index."""
    for index, task in enumerate(job.spec.tasks):
        if not task.name:
            task.name = f"default{index}"
        yield task


def replicas_of(job: VolcanoJob) -> int:
    """Return the total number of pods of the Job."""
    return sum(task.replicas for task in job.spec.tasks)


def task_minimum(task: TaskSpec) -> int:
    """Return how many pods of a task its gang needs."""
    return task.replicas if task.min_available is None else task.min_available


def min_available(job: VolcanoJob) -> int:
    """Return how many pods the Job needs. Without a value (0 counts as none, as in Volcano), the sum over its tasks."""
    return job.spec.min_available or sum(map(task_minimum, job.spec.tasks))


def task_of(pod: Pod) -> str:
    """Return the name of the task that the pod was created for."""
    return (pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def pod_name(job: VolcanoJob, task: str, index: int) -> str:
    return f"{job.metadata.name}-{task}-{index}"


@dataclass(slots=True)
class Census:
    """Counts of the Job's pods."""

    by_phase: dict[str, int] = field(default_factory=dict)
    by_task: dict[str, dict[str, int]] = field(default_factory=dict)
    terminating: int = 0

    def of(self, phase: str) -> int:
        return self.by_phase.get(phase, 0)

    def of_task(self, task: str, *phases: str) -> int:
        """Return the number of a task's pods in any of `phases`; without phases, of all its pods."""
        counts = self.by_task.get(task, {})
        return sum(count for phase, count in counts.items() if not phases or phase in phases)


def count(pods: Sequence[Pod], pods_to_delete: frozenset[str] = frozenset()) -> Census:
    """Count pods. Those whose uid is in `pods_to_delete` count as terminating."""
    census = Census()
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None or pod.metadata.uid in pods_to_delete:
            census.terminating += 1
            continue
        phase = pod.status.phase
        census.by_phase[phase] = census.by_phase.get(phase, 0) + 1
        of_task = census.by_task.setdefault(task_of(pod), {})
        of_task[phase] = of_task.get(phase, 0) + 1
    return census


def is_live(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


def surplus(job: VolcanoJob, pods: Sequence[Pod]) -> list[Pod]:
    """Return the live pods that the spec does not include: an index beyond its task's replicas, or no such task."""
    wanted = {task.name: task.replicas for task in tasks_of(job)}
    return [pod for pod in pods if is_live(pod) and not 0 <= index_of(pod.metadata.name) < wanted.get(task_of(pod), 0)]
