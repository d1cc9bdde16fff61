"""What a cycle's decisions mean for the status of pods, PodGroups and queues.

The one rule: pure. It says what a status should be, given the object as it was last seen; whether and when it is
written is the publisher's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework.decisions import QueueNumbers
from ..model import objects
from ..model.job import Job
from ..model.resources import PODS, quantities
from ..model.task import Task, TaskStatus
from ..model.times import timestamp

Status = dict[str, Any]

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
NOT_ENOUGH, READY = "NotEnoughResources", "tasks in gang are ready to be scheduled"


def of_podgroup(job: Job, phase: str, message: str, now: float) -> Status:
    """The status of a job's PodGroup: phase, counts, and the condition that says why it waits, or that it does not.

    ``message`` is the core's reason, empty where nothing of the job waits.
    """
    assert job.group is not None
    status: Status = {"phase": phase or "Pending"}
    for name, which in (
        ("running", TaskStatus.RUNNING),
        ("succeeded", TaskStatus.SUCCEEDED),
        ("failed", TaskStatus.FAILED),
    ):
        if tasks := job.by_status.get(which):
            status[name] = len(tasks)
    before = {c.type: c for c in job.group.status.conditions or ()}
    wanted: list[objects.Condition] = []
    if message:
        wanted.append(objects.Condition(UNSCHEDULABLE, "True", NOT_ENOUGH, message))
    elif UNSCHEDULABLE in before:
        wanted.append(objects.Condition(UNSCHEDULABLE, "False", "", ""))
    if job.tasks and job.ready >= job.min_available:
        wanted.append(objects.Condition(SCHEDULED, "True", "", READY))
    elif SCHEDULED in before:
        wanted.append(objects.Condition(SCHEDULED, "False", NOT_ENOUGH, ""))
    if wanted:
        status["conditions"] = [_condition(condition, before.get(condition.type), now) for condition in wanted]
    return status


def of_pod(task: Task, message: str, nominated: str | None, now: float) -> Status:
    """The change to a pending pod's status: why it waits and where room is kept for it; empty where it says so already.

    ``nominated``: None leaves it, an empty string takes it back.
    """
    status: Status = {}
    if message:
        seen = next((c for c in task.pod.status.conditions or () if c.type == "PodScheduled"), None)
        wanted = objects.Condition("PodScheduled", "False", UNSCHEDULABLE, message)
        if seen is None or _says(seen) != _says(wanted):
            status["conditions"] = [_condition(wanted, seen, now)]
    if nominated is not None and nominated != task.pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return status


def of_queue(numbers: QueueNumbers) -> Status:
    """What the scheduler alone knows of a queue: what it has and what it is entitled to."""
    told = {"allocated": numbers.allocated, "deserved": numbers.deserved}
    return {
        what: quantities({name: amount for name, amount in amounts.items() if amount or name != PODS})
        for what, amounts in told.items()
    }


def differs(status: Status, group: objects.PodGroup) -> bool:
    """Whether a status that was computed says anything that the PodGroup, as last seen, does not say."""
    seen = group.status
    if (status["phase"], *(status.get(name, 0) for name in ("running", "succeeded", "failed"))) != (
        seen.phase,
        seen.running,
        seen.succeeded,
        seen.failed,
    ):
        return True
    known = {c.type: _says(c) for c in seen.conditions or ()}
    wanted = status.get("conditions", ())
    return any(known.get(c["type"]) != (c["status"], c["reason"], c["message"]) for c in wanted)


def said(group: objects.PodGroup) -> str:
    """The reason that a PodGroup gives for its waiting as it was last seen, or empty."""
    conditions = group.status.conditions or ()
    return next((c.message for c in conditions if c.type == UNSCHEDULABLE and c.status == "True"), "")


def malformed(message: str, now: float) -> Status:
    """The condition of an object that cannot be read."""
    return {
        "type": "Malformed",
        "status": "True",
        "reason": "Unreadable",
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def _condition(wanted: objects.Condition, seen: objects.Condition | None, now: float) -> Status:
    since = seen.last_transition_time if seen is not None and seen.status == wanted.status else None
    return {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": since or timestamp(now),
    }


def _says(condition: objects.Condition) -> Sequence[str]:
    return (condition.status, condition.reason, condition.message)
