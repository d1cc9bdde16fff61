"""The conditions of a PyTorchJob, as Kubeflow's training operator keeps them.

The one rule: the condition that says where the job is now stands last; ``kubectl get`` shows that one.
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


OBSTACLES = frozenset(("NotHonoured", "Malformed", "QueueNotUsable", "GangTooLarge"))
"""Reasons of a condition that a user has to do something about."""
_REPLACES = {
    TrainingCondition.RUNNING: TrainingCondition.RESTARTING,
    TrainingCondition.RESTARTING: TrainingCondition.RUNNING,
}
"""A condition that takes the place of another."""
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
    """When the job ended."""
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
    """Make a condition true and the last one; nothing changes where it is that already."""
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
    """Say on a job that has only been created what it waits for, and take that back once it is over."""
    last = (status.conditions or [PyTorchCondition()])[-1]
    if last.type != TrainingCondition.CREATED:
        return
    if message:
        put(job, status, TrainingCondition.CREATED, now, reason=reason, message=message)
    elif last.reason in OBSTACLES:
        put(job, status, TrainingCondition.CREATED, now)


def resume(job: PyTorchJob, status: PyTorchJobStatus, now: float) -> None:
    """The job is no longer suspended: it is as if newly created."""
    status.conditions = [one for one in status.conditions or () if one.type != TrainingCondition.SUSPENDED]
    told = f"PyTorchJob {job.metadata.name} is resumed."
    put(job, status, TrainingCondition.CREATED, now, reason="PyTorchJobResumed", message=told)
    status.start_time = timestamp(now)


def count(job: PyTorchJob, pods: list[Pod]) -> dict[str, ReplicaStatus]:
    """Pods by replica type."""
    found = {}
    for kind, _ in replicas_of(job):
        mine = [pod for pod in pods if (pod.metadata.labels or {}).get(names.TRAINING_TYPE) == kind.lower()]
        phases = [pod.status.phase for pod in mine if pod.metadata.deletion_timestamp is None]
        selector = f"{names.TRAINING_JOB}={job.metadata.name},{names.TRAINING_TYPE}={kind.lower()}"
        found[kind] = ReplicaStatus(
            phases.count("Running"), phases.count("Succeeded"), phases.count("Failed"), selector
        )
    return found


def final_count(job: PyTorchJob, status: PyTorchJobStatus, kept: list[Pod]) -> dict[str, ReplicaStatus]:
    """The counts of a job that has ended: what had succeeded or failed then stays, though its pods are cleaned up. Pods
    that a success ended count as succeeded.
    """
    before = status.replica_statuses or {}
    found = count(job, kept)
    for kind, now in found.items():
        was = before.get(kind, now)
        now.failed = was.failed
        now.succeeded = was.succeeded + (was.active if has(status, TrainingCondition.SUCCEEDED) else 0)
        now.active = 0 if has(status, TrainingCondition.SUCCEEDED) else now.active
    return found
