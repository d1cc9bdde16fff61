"""The conditions of a PyTorchJob, as Kubeflow's training operator keeps them.

The condition of the current state is the last one; `kubectl get` shows it.
"""

from __future__ import annotations

from enum import StrEnum

from ...model import names
from ...model.objects import Pod
from ...model.times import timestamp
from ..runtime.objects import PyTorchCondition, PyTorchJob, PyTorchJobStatus, ReplicaStatus
from .pods import replicas_of


class TrainingCondition(StrEnum):
    """Types of a PyTorchJob's conditions."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


NAME_TAKEN = "NameTaken"
OBSTACLES = frozenset(("NotHonoured", "Malformed", "QueueNotUsable", "GangTooLarge", NAME_TAKEN))
"""Reasons of a condition that a user has to act on."""
_REPLACES = {
    TrainingCondition.RUNNING: TrainingCondition.RESTARTING,
    TrainingCondition.RESTARTING: TrainingCondition.RUNNING,
}
"""A condition, and the one that it replaces."""
_TEXTS = {
    TrainingCondition.CREATED: "is created",
    TrainingCondition.RUNNING: "is running",
    TrainingCondition.RESTARTING: "is restarting",
    TrainingCondition.SUSPENDED: "is suspended",
    TrainingCondition.SUCCEEDED: "is successfully completed",
    TrainingCondition.FAILED: "has failed",
}


def has(status: PyTorchJobStatus, kind: str) -> bool:
    return any(one.type == kind and one.status == "True" for one in status.conditions or ())


def is_finished(status: PyTorchJobStatus) -> bool:
    return has(status, TrainingCondition.SUCCEEDED) or has(status, TrainingCondition.FAILED)


def finished_at(status: PyTorchJobStatus) -> str | None:
    """Return when the job ended."""
    if status.completion_time:
        return status.completion_time
    return next(
        (one.last_transition_time for one in status.conditions or () if one.type == TrainingCondition.FAILED), None
    )


def put(
    job: PyTorchJob,
    status: PyTorchJobStatus,
    kind: TrainingCondition,
    now: float,
    *,
    reason: str = "",
    message: str = "",
) -> None:
    """Set a condition to True and move it to the end, unless the last condition has this type, reason and message."""
    reason = reason or f"PyTorchJob{kind}"
    message = message or f"PyTorchJob {job.metadata.name} {_TEXTS[kind]}."
    conditions = list(status.conditions or ())
    last = conditions[-1] if conditions else PyTorchCondition()
    if (last.type, last.status, last.reason, last.message) == (kind, "True", reason, message):
        return
    moment = timestamp(now)
    kept = [one for one in conditions if one.type not in (kind, _REPLACES.get(kind))]
    if kind in (TrainingCondition.SUCCEEDED, TrainingCondition.FAILED, TrainingCondition.SUSPENDED):
        for one in kept:
            if one.type in (TrainingCondition.RUNNING, TrainingCondition.RESTARTING) and one.status == "True":
                one.status, one.last_transition_time, one.last_update_time = "False", moment, moment
    status.conditions = [*kept, PyTorchCondition(kind, "True", reason, message, moment, moment)]


def put_obstacle(job: PyTorchJob, status: PyTorchJobStatus, reason: str, message: str, now: float) -> None:
    """Set the reason why a created job waits; an empty `message` removes the reason."""
    last = (status.conditions or [PyTorchCondition()])[-1]
    if last.type != TrainingCondition.CREATED:
        return
    if message:
        put(job, status, TrainingCondition.CREATED, now, reason=reason, message=message)
    elif last.reason in OBSTACLES:
        put(job, status, TrainingCondition.CREATED, now)


def resume(job: PyTorchJob, status: PyTorchJobStatus, now: float) -> None:
    """Replace the Suspended condition of a resumed job by a new Created condition, and start its time again."""
    status.conditions = [one for one in status.conditions or () if one.type != TrainingCondition.SUSPENDED]
    message = f"PyTorchJob {job.metadata.name} is resumed."
    put(job, status, TrainingCondition.CREATED, now, reason="PyTorchJobResumed", message=message)
    status.start_time = timestamp(now)


def count(job: PyTorchJob, pods: list[Pod]) -> dict[str, ReplicaStatus]:
    """Count the running, succeeded and failed pods of each replica type; pods being deleted do not count."""
    found = {}
    for kind, _ in replicas_of(job):
        of_kind = [pod for pod in pods if (pod.metadata.labels or {}).get(names.TRAINING_TYPE) == kind.lower()]
        phases = [pod.status.phase for pod in of_kind if pod.metadata.deletion_timestamp is None]
        selector = f"{names.TRAINING_JOB}={job.metadata.name},{names.TRAINING_TYPE}={kind.lower()}"
        found[kind] = ReplicaStatus(
            phases.count("Running"), phases.count("Succeeded"), phases.count("Failed"), selector
        )
    return found


def final_count(job: PyTorchJob, status: PyTorchJobStatus, kept: list[Pod]) -> dict[str, ReplicaStatus]:
    """Return the counts of a job that has ended.

    The counts are kept when its pods are deleted. Running pods of a job that succeeded count as succeeded.
    """
    before = status.replica_statuses or {}
    found = count(job, kept)
    for kind, now in found.items():
        was = before.get(kind, now)
        now.failed = was.failed
        now.succeeded = was.succeeded + (was.active if has(status, TrainingCondition.SUCCEEDED) else 0)
        now.active = 0 if has(status, TrainingCondition.SUCCEEDED) else now.active
    return found
