"""Report to the change listener how a change of a pod may affect other jobs: what it freed, and where it runs now."""

from __future__ import annotations

from dataclasses import dataclass

from .changes import FREED, PLACED, REQUESTS, RUNNING, ChangeListener
from .job import Job
from .task import COMPLETED, HOLDING, Task, TaskStatus


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
