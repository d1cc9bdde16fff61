"""Compute the status of pods, PodGroups and queues from a cycle's decisions.

The functions are pure: a status follows from the decisions and the object as last seen. The status writer decides
whether and when to write a status.
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


def of_podgroup(job: Job, phase: str, message: str, now: float, reason: str = NOT_ENOUGH) -> Status:
    """Return the status of a job's PodGroup: phase, counts of pods, and conditions.

    `message` is why the job waits; it is empty if no part of the job waits.
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
        wanted.append(objects.Condition(UNSCHEDULABLE, "True", reason, message))
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
    """Return the change to a pending pod's status: why it waits, and the node nominated for it.

    The change is empty if the status is up to date. In `nominated`, None keeps the current value, and "" removes it.
    """
    status: Status = {}
    if message:
        seen = next((c for c in task.pod.status.conditions or () if c.type == "PodScheduled"), None)
        wanted = objects.Condition("PodScheduled", "False", UNSCHEDULABLE, message)
        if seen is None or _content_of(seen) != _content_of(wanted):
            status["conditions"] = [_condition(wanted, seen, now)]
    if nominated is not None and nominated != task.pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    return status


def of_queue(numbers: QueueNumbers) -> Status:
    """Return the scheduler's part of a queue's status: its allocated and its deserved resources."""
    amounts_of = {"allocated": numbers.allocated, "deserved": numbers.deserved}
    return {
        what: quantities({name: amount for name, amount in amounts.items() if amount or name != PODS})
        for what, amounts in amounts_of.items()
    }


def differs(status: Status, group: objects.PodGroup) -> bool:
    """Return True if a computed status differs from the PodGroup as last seen."""
    seen = group.status
    if (status["phase"], *(status.get(name, 0) for name in ("running", "succeeded", "failed"))) != (
        seen.phase,
        seen.running,
        seen.succeeded,
        seen.failed,
    ):
        return True
    known = {c.type: _content_of(c) for c in seen.conditions or ()}
    wanted = status.get("conditions", ())
    return any(known.get(c["type"]) != (c["status"], c["reason"], c["message"]) for c in wanted)


def shown_reason(group: objects.PodGroup) -> str:
    """Return the reason for waiting in the PodGroup's status as last seen, or an empty string."""
    conditions = group.status.conditions or ()
    return next((c.message for c in conditions if c.type == UNSCHEDULABLE and c.status == "True"), "")


def malformed(message: str, now: float) -> Status:
    """Return the condition of an object that cannot be read."""
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


def _content_of(condition: objects.Condition) -> Sequence[str]:
    return (condition.status, condition.reason, condition.message)
