"""Topics of changes of the state, and what a change of a pod or a PodGroup may free for other jobs.

The state reports topics to a listener, whose interface stands here: the backlog of waiting jobs implements it
(`scheduler.backlog.backlog`), and the state does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import objects
from .job import Job, PodGroupPhase
from .task import COMPLETED, HOLDING, Task, TaskStatus

FREED = "freed"
"""A pod was deleted, ended or terminates: capacity and quota became free."""
PLACED = "placed"
"""A pod got a node: neighbours and shares of queues changed. `placed:Q`: a pod of queue Q got a node."""
RUNNING = "running"
"""A pod began to run, so that it may be reclaimed."""
GROUPS = "groups"
"""A PodGroup requests less than before, or is served at another position."""
WORK = "work"
"""A queue got its first PodGroup, and there are guarantees: under proportion, shares of queues may grow by them."""
REQUESTS = "requests"
"""A job requests more than before. This concerns only policies under which other queues then deserve less."""
VOLUMES = "volumes"
"""A volume, a claim, or a node's storage driver changed."""
BUDGETS = "budgets"
"""A PodDisruptionBudget changed."""
QUOTAS = "quotas"
"""A ResourceQuota of a namespace changed."""
CLAIMS = "claims"
"""A job lost the capacity (free or being freed) that was kept for it, or got other capacity."""
TOPICS = (FREED, PLACED, RUNNING, GROUPS, WORK, VOLUMES, BUDGETS, QUOTAS, CLAIMS)
"""All topics but `REQUESTS`. Changes of nodes, queues, priority classes and namespaces have none: they concern every
waiting job.
"""
QUOTA_TOPICS = frozenset((FREED, PLACED, GROUPS, WORK, CLAIMS))
"""The changes that could make room in a queue's quota."""


class ChangeListener:
    """A listener that ignores every change."""

    @property
    def is_interested(self) -> bool:
        """Whether reports about pods matter now; preparing them costs time."""
        return False

    def report(self, topic: str, queue: str = "") -> None:
        """Report a change of a topic; `queue` is the only queue whose quota may have moved, if that is known."""

    def report_all(self) -> None:
        """Report a change that could alter any decision."""

    def report_job(self, key: str) -> None:
        """Report a change of the job itself."""

    def report_undecided(self, key: str, is_undecided: bool) -> None:
        """Report whether an action may have work for a job that has changed (`scheduler.model.sums`)."""

    def report_task(self, key: str) -> None:
        """Report a change of the task itself."""

    def report_capacity(self, node: str) -> None:
        """Report that a node may have more capacity than before."""

    def drop(self, key: str) -> None:
        """Report that a job was deleted."""


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
    if before is None or is_other:
        listener.report(REQUESTS)
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
