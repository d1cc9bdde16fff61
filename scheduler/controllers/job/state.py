"""What the Job controller sees of one Job at one moment, and the counts that follow from it.

The one rule: counts are of pods that are neither going nor about to be deleted; everything else is ``terminating``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...model import names
from ...model.objects import Pod, PodGroup, PriorityClass
from ...model.task import index_of
from ..queue.state import DEFAULT
from ..runtime.objects import Command, Job, TaskSpec
from ..runtime.slices import ANYWHERE, RoomLimits


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
"""Phases that only wait for pods to go, and what comes then."""
POD_FINISHED = frozenset(("Succeeded", "Failed"))


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """One Job and all that its reconciliation looks at. ``pods`` are those it controls, of whatever version."""

    job: Job
    pods: Sequence[Pod] = ()
    group: PodGroup | None = None
    commands: Sequence[Command] = ()
    classes: Sequence[PriorityClass] = ()
    queue: str = DEFAULT
    """Where the Job runs: what it names, or what its namespace does."""
    place: RoomLimits = ANYWHERE
    """What the Job's gang could have at most."""
    queue_problem: str = ""
    """Why nothing can run in the Job's queue (not there, closed, has children), or empty."""
    scheduler_name: str = ""
    """Who schedules pods whose Job names nobody."""
    now: float = 0.0


def tasks_of(job: Job) -> Iterator[TaskSpec]:
    """The Job's tasks; one without a name is called ``default`` and its place."""
    for place, task in enumerate(job.spec.tasks):
        if not task.name:
            task.name = f"default{place}"
        yield task


def replicas_of(job: Job) -> int:
    """How many pods the Job wants in all."""
    return sum(task.replicas for task in job.spec.tasks)


def task_minimum(task: TaskSpec) -> int:
    """How many pods of a task its gang needs."""
    return task.replicas if task.min_available is None else task.min_available


def min_available(job: Job) -> int:
    """How many pods the Job needs; where it does not say (0 says nothing, as with Volcano), the sum over its tasks."""
    return job.spec.min_available or sum(map(task_minimum, job.spec.tasks))


def task_of(pod: Pod) -> str:
    """The name of the task that the pod was made for."""
    return (pod.metadata.annotations or {}).get(names.TASK_SPEC, "")


def pod_name(job: Job, task: str, index: int) -> str:
    return f"{job.metadata.name}-{task}-{index}"


@dataclass(slots=True)
class Census:
    """The Job's pods, counted."""

    by_phase: dict[str, int] = field(default_factory=dict)
    by_task: dict[str, dict[str, int]] = field(default_factory=dict)
    terminating: int = 0

    def of(self, phase: str) -> int:
        return self.by_phase.get(phase, 0)

    def of_task(self, task: str, *phases: str) -> int:
        """Pods of a task in any of ``phases``; without any, all of them."""
        counts = self.by_task.get(task, {})
        return sum(count for phase, count in counts.items() if not phases or phase in phases)


def count(pods: Sequence[Pod], pods_to_delete: frozenset[str] = frozenset()) -> Census:
    """Count pods; those whose uid is in ``pods_to_delete`` are as good as gone."""
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


def surplus(job: Job, pods: Sequence[Pod]) -> list[Pod]:
    """Live pods that the spec no longer asks for: of an index beyond its task's replicas, or of no task."""
    wanted = {task.name: task.replicas for task in tasks_of(job)}
    return [pod for pod in pods if is_live(pod) and not 0 <= index_of(pod.metadata.name) < wanted.get(task_of(pod), 0)]
