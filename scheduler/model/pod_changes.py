"""Report to the change listener how a change of a pod may affect other jobs: what it freed, and where it runs now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import objects
from .changes import FREED, PLACED, RUNNING, ChangeListener
from .job import Job, PodGroupPhase
from .task import COMPLETED, HOLDING, Task, TaskStatus

MAX_NAMES = 32
"""Maximum number of resources that a PodGroup may name."""
MAX_SUBGROUP_PARTS = 256
"""Maximum number of subgroup policies, labels and values of a PodGroup in all: each pod is matched with all."""
ON_ITS_WAY = {
    ("", PodGroupPhase.PENDING),
    ("", PodGroupPhase.INQUEUE),
    (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE),
    (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING),
}
"""Changes of a PodGroup's phase that follow from a decision."""


def check_size(group: objects.PodGroup) -> None:
    """Reject a PodGroup with too many resources, subgroup policies or labels.

    Raises:
        ValueError: `minResources` or `subGroupPolicy` has more parts than the maximum.
    """
    if (number := len(group.spec.min_resources or ())) > MAX_NAMES:
        raise ValueError(f"spec.minResources names {number} resources; name at most {MAX_NAMES}")
    if (number := _parts(group.spec.sub_group_policy or ())) > MAX_SUBGROUP_PARTS:
        text = f"spec.subGroupPolicy has {number} policies and labels in all"
        raise ValueError(f"{text}; write at most {MAX_SUBGROUP_PARTS}")


def reserves_as_before(job: Job, phase: str) -> bool:
    """Whether a job's change from `phase` to its current phase frees nothing for other jobs.

    The cycle that admits a job reserves its whole minimum. Later cycles reserve what the job does not hold, or nothing
    if the job runs with too few tasks.
    """
    if (phase, job.phase) not in ON_ITS_WAY:
        return False
    if job.phase == PodGroupPhase.INQUEUE:
        return not job.allocated
    return job.phase == PodGroupPhase.PENDING or job.count(HOLDING) >= job.min_available


def _parts(policies: Iterable[objects.SubGroupPolicy]) -> int:
    """Return the number of subgroup policies and of the labels and values that they name."""
    number = 0
    for policy in policies:
        number += 1 + len(policy.match_label_keys or ())
        if (selector := policy.label_selector) is not None:
            number += len(selector.match_labels or ())
            number += sum(1 + len(item.values or ()) for item in selector.match_expressions or ())
    return number


@dataclass(frozen=True, slots=True)
class PodState:
    """The state of a pod on which waiting jobs may depend."""

    job: str
    status: TaskStatus
    node: str
    nominated: str

    @classmethod
    def of(cls, task: Task) -> PodState:
        return cls(task.job, task.status, task.node, task.nominated)

    @property
    def holds(self) -> bool:
        return bool(self.node) and not self.is_done

    @property
    def is_done(self) -> bool:
        return bool(self.status & COMPLETED)

    def still_holds(self, now: PodState) -> bool:
        """Whether the pod held capacity in this state, and holds all of it in the state `now`."""
        holds = now.holds and self.node == now.node and (not self.status & HOLDING or now.status & HOLDING)
        return self.holds and bool(holds)


def report_pod(
    listener: ChangeListener,
    task: Task,
    job: Job | None,
    before: PodState | None,
    now: PodState | None,
    *,
    is_other: bool,
) -> None:
    """Report a change of a pod.

    Args:
        listener: Receives the reports.
        task: The pod.
        job: The pod's job, if it still exists.
        before: The state before; None for a new pod.
        now: The state now; None for a deleted pod.
        is_other: Whether more than `PodState` has changed.
    """
    for key in {task.job, "" if before is None else before.job}:
        listener.report_job(key)
    listener.report_task(task.key)
    if before is not None and (is_other or (now != before and (now is None or not before.still_holds(now)))):
        _report_freed(listener, before, now, "" if job is None or before.job != job.key else job.queue)
    if now is None:
        return
    if now.holds and (is_other or before is None or before.node != now.node):
        listener.report(PLACED, "" if job is None else job.queue)
        if job is not None:
            listener.report(f"{PLACED}:{job.queue}")
    if now.status is TaskStatus.RUNNING:
        listener.report(RUNNING)


def _report_freed(listener: ChangeListener, before: PodState, now: PodState | None, queue: str) -> None:
    """Report that a pod of a queue no longer holds or requests what it did before."""
    listener.report_capacity(before.node)
    listener.report_capacity(before.nominated)
    if before.holds or now is None or now.is_done:
        listener.report(FREED, queue)
