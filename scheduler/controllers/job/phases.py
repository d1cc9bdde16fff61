"""The state machine of a Job: the next phase, and the pods to delete in each phase.

A phase follows from the status and the counts alone, and pods are deleted for the phase that the status already has. So
another controller can continue after a crash between two writes.

Phases and transitions are those of Volcano's `pkg/controllers/job/state`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.objects import Pod
from ..runtime.objects import DelayedAction, JobStatus, VolcanoJob
from ..runtime.pods import version_of
from .events import RequestedAction
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
ENDS = {"AbortJob": JobPhase.ABORTING, "TerminateJob": JobPhase.TERMINATING, "CompleteJob": JobPhase.COMPLETING}
"""Actions after which no pod of the Job is created → the phase that begins."""
_RESTARTS = ("RestartJob", "RestartTask", "RestartPod")
ACTIONS = frozenset((RESUME, *ENDS, *_RESTARTS))
"""Valid actions of a policy."""


def apply_action(requested: RequestedAction, status: JobStatus) -> bool:
    """Apply an action to the status: set the phase, and a new version if the action ends or restarts the whole Job.

    Return False if the action has no effect.
    """
    phase = status.state.phase
    if requested.action == RESUME:
        if phase not in (JobPhase.ABORTED, JobPhase.ABORTING):
            return False
        status.state.phase = JobPhase.RESTARTING
        status.retry_count += 1
    elif phase not in (JobPhase.PENDING, JobPhase.RUNNING):
        return False
    elif requested.action in ENDS:
        status.state.phase = ENDS[requested.action]
        status.version += 1
    elif requested.action in _RESTARTS:
        status.state.phase = JobPhase.RESTARTING
        status.retry_count += 1
        status.version += requested.action == "RestartJob"
    else:
        return False
    status.state.reason = requested.action
    status.state.message = requested.cause
    status.delayed = [one for one in status.delayed or () if not _supersedes(requested, one)] or None
    return True


def _supersedes(requested: RequestedAction, delayed: DelayedAction) -> bool:
    """Whether an action includes a delayed one: the restart of a pod or task keeps those of other pods and tasks."""
    match requested.action:
        case "RestartPod":
            return delayed.action == "RestartPod" and delayed.pod == requested.pod
        case "RestartTask":
            return delayed.action in ("RestartPod", "RestartTask") and delayed.task == requested.task
    return True


def advance(job: VolcanoJob, status: JobStatus, census: Census) -> str:
    """Return the phase that follows from the counts; the same phase if nothing changes."""
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


def _running(job: VolcanoJob, census: Census, finished: int) -> str:
    """Return the phase after Running: the Job ended, or lacks so many pods that it waits again."""
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


def pods_to_restart(status: JobStatus, pods: Sequence[Pod], requested: RequestedAction | None) -> list[str]:
    """Return the uids of live pods that a restart of one pod or task replaces.

    The restart is the requested action, or an earlier one whose pods were not deleted before the controller stopped.
    """
    before = status.restarting or ()
    restart = (
        requested if requested is not None and status.state.phase == JobPhase.RESTARTING else RequestedAction("", "")
    )
    return [
        pod.metadata.uid
        for pod in pods
        if is_live(pod)
        and (
            pod.metadata.uid in before
            or (restart.action == "RestartPod" and pod.metadata.name == restart.pod)
            or (restart.action == "RestartTask" and task_of(pod) == restart.task)
        )
    ]


def pods_to_delete(job: VolcanoJob, status: JobStatus, pods: Sequence[Pod]) -> list[Pod]:
    """Return the live pods to delete in the phase of `status`, or because `status` names them."""
    phase = status.state.phase
    live = [pod for pod in pods if is_live(pod)]
    if phase in ENDING or phase in FINISHED or phase == JobPhase.ABORTED:
        return [pod for pod in live if pod.status.phase not in POD_FINISHED]
    stale = [pod for pod in live if version_of(pod) != status.version]
    if phase != JobPhase.RESTARTING or status.state.reason == RESUME:  # pods that finished before an abort are kept
        stale = [pod for pod in stale if pod.status.phase not in POD_FINISHED]
    named = [pod for pod in live if pod.metadata.uid in (status.restarting or ())]
    return list({pod.metadata.uid: pod for pod in [*stale, *surplus(job, pods), *named]}.values())
