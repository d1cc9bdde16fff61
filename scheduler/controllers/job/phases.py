"""The life of a Job as a state machine: which phase follows, and which pods have to go in it.

The one rule: a phase is decided from the status and the counts alone, and pods are deleted because of the phase that
the status already says. So a controller that dies between two writes is continued by the next one. (Phases and
transitions: Volcano's ``pkg/controllers/job/state``.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.objects import Pod
from ..runtime.objects import Job, JobStatus
from ..runtime.pods import version_of
from .events import Order
from .state import (
    ENDING,
    FINISHED,
    POD_FINISHED,
    Census,
    JobPhase,
    is_live,
    min_available,
    replicas_of,
    surplus,
    task_minimum,
    task_of,
    tasks_of,
)

RESUME = "ResumeJob"
_ENDS = {"AbortJob": JobPhase.ABORTING, "TerminateJob": JobPhase.TERMINATING, "CompleteJob": JobPhase.COMPLETING}
_RESTARTS = ("RestartJob", "RestartTask", "RestartPod")
ACTIONS = frozenset((RESUME, *_ENDS, *_RESTARTS))
"""What a policy may ask for."""


def follow(order: Order, status: JobStatus) -> bool:
    """Carry an order into the status: another phase, a new version where all pods are done with. False: no effect."""
    phase = status.state.phase
    if order.action == RESUME:
        if phase not in (JobPhase.ABORTED, JobPhase.ABORTING):
            return False
        status.state.phase = JobPhase.RESTARTING
        status.retry_count += 1
    elif phase not in (JobPhase.PENDING, JobPhase.RUNNING):
        return False
    elif order.action in _ENDS:
        status.state.phase = _ENDS[order.action]
        status.version += 1
    elif order.action in _RESTARTS:
        status.state.phase = JobPhase.RESTARTING
        status.retry_count += 1
        status.version += order.action == "RestartJob"
    else:
        return False
    status.state.reason = order.action
    status.state.message = order.cause
    status.delayed = None
    return True


def advance(job: Job, status: JobStatus, census: Census) -> str:
    """The phase that follows from the counts; the same one where nothing is to change."""
    phase = status.state.phase or JobPhase.PENDING
    if phase in ENDING:
        left = census.terminating + census.of("Pending") + census.of("Running") + census.of("Unknown")
        return phase if left else ENDING[JobPhase(phase)]
    if phase == JobPhase.RESTARTING:
        if status.retry_count >= job.spec.max_retry:
            return JobPhase.FAILED
        return JobPhase.PENDING if replicas_of(job) - census.terminating >= min_available(job) else phase
    finished = census.of("Succeeded") + census.of("Failed")
    if phase == JobPhase.PENDING and min_available(job) <= census.of("Running") + finished and replicas_of(job):
        phase = JobPhase.RUNNING
    return _running(job, census, finished) if phase == JobPhase.RUNNING else phase


def _running(job: Job, census: Census, finished: int) -> str:
    """What follows on Running: the Job has ended, or lacks so many pods that it waits again."""
    total, wanted, succeeded = replicas_of(job), job.spec.min_success, census.of("Succeeded")
    if total == 0:
        return JobPhase.RUNNING
    if wanted is not None and succeeded >= wanted:
        return JobPhase.COMPLETED
    if finished == total:
        tasks = list(tasks_of(job))
        if min_available(job) >= sum(map(task_minimum, tasks)) and any(
            task.min_available is not None and census.of_task(task.name, "Succeeded") < task.min_available
            for task in tasks
        ):
            return JobPhase.FAILED
        enough = min_available(job) if wanted is None else wanted
        return JobPhase.COMPLETED if succeeded >= enough else JobPhase.FAILED
    return JobPhase.PENDING if census.of("Pending") > total - min_available(job) else JobPhase.RUNNING


def pods_to_restart(status: JobStatus, pods: Sequence[Pod], order: Order | None) -> list[str]:
    """The uids of live pods that a restart of one pod or task takes: by this order, or by an earlier one, if the
    controller died before it deleted them.
    """
    before = status.restarting or ()
    ordered = order if order is not None and status.state.phase == JobPhase.RESTARTING else Order("", "")
    return [
        pod.metadata.uid
        for pod in pods
        if is_live(pod)
        and (
            pod.metadata.uid in before
            or (ordered.action == "RestartPod" and pod.metadata.name == ordered.pod)
            or (ordered.action == "RestartTask" and task_of(pod) == ordered.task)
        )
    ]


def pods_to_delete(job: Job, status: JobStatus, pods: Sequence[Pod]) -> list[Pod]:
    """The live pods that have to go in the phase that ``status`` says, or because it names them."""
    phase = status.state.phase
    live = [pod for pod in pods if is_live(pod)]
    if phase in ENDING or phase in FINISHED or phase == JobPhase.ABORTED:
        return [pod for pod in live if pod.status.phase not in POD_FINISHED]
    stale = [pod for pod in live if version_of(pod) != status.version]
    if phase != JobPhase.RESTARTING or status.state.reason == RESUME:  # what had finished before an abort stays so
        stale = [pod for pod in stale if pod.status.phase not in POD_FINISHED]
    named = [pod for pod in live if pod.metadata.uid in (status.restarting or ())]
    return list({pod.metadata.uid: pod for pod in [*stale, *surplus(job, pods), *named]}.values())
