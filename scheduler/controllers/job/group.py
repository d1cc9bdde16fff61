"""The PodGroup of a Job: the gang that the scheduler sees.

The one rule: the PodGroup follows the Job's spec; what it asks (minResources) is what its most important pods ask.
"""

from __future__ import annotations

from typing import Any

from ...kube.resource import PODGROUPS
from ...model import names, resources
from ...model.objects import PodGroup
from ...model.resources import Resource, quantities
from ..runtime.objects import JOBS, Job, TaskSpec
from ..runtime.pods import priority_of, request_of, without_applied
from ..runtime.slices import AHEAD, too_large
from ..runtime.writes import ApplyObject, Create, Remove, Write, owned_by
from .state import ObservedJob, min_available, task_minimum, tasks_of


def group_name(job: Job) -> str:
    """As Volcano names it: name and uid of the Job, so that a Job's successor never takes over an old PodGroup."""
    return f"{job.metadata.name}-{job.metadata.uid}"


def group_spec(seen: ObservedJob) -> dict[str, Any]:
    job = seen.job
    spec: dict[str, Any] = {
        "minMember": _gang(job),
        "minTaskMember": {task.name: _minimum(task) for task in tasks_of(job)},
        "queue": seen.queue,
        "minResources": quantities(min_resources(seen)),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    return spec


def gang_problem(seen: ObservedJob) -> str:
    """Why the Job's gang could never start; empty if it could."""
    members = _gang(seen.job)
    return too_large(members, min_resources(seen), seen.place) if members > AHEAD else ""


def _gang(job: Job) -> int:
    """How many pods must find room together. One that waits for others of the job is no part of that, or neither would
    ever start.
    """
    return min(min_available(job), sum(task.replicas for task in job.spec.tasks if not _waits(task)))


def _minimum(task: TaskSpec) -> int:
    return 0 if _waits(task) else task_minimum(task)


def _waits(task: TaskSpec) -> bool:
    return task.depends_on is not None and bool(task.depends_on.name)


def min_resources(seen: ObservedJob) -> Resource:
    """The requests of as many pods as the gang needs: each task's minimum first, then by the tasks' priority."""
    job = seen.job
    tasks = sorted(
        tasks_of(job),
        key=lambda task: -priority_of(task.template.get("spec", {}).get("priorityClassName", ""), seen.classes),
    )
    left = _gang(job)
    minima = {task.name: _minimum(task) for task in tasks}
    if left < sum(minima.values()):
        minima = dict.fromkeys(minima, 0)
    left -= sum(minima.values())
    total: Resource = {}
    for task in tasks:
        extra = 0 if _waits(task) else min(max(left, 0), task.replicas - minima[task.name])
        left -= extra
        pods = minima[task.name] + extra
        request = request_of(task.template) if pods else {}
        resources.add_to(total, {name: amount * pods for name, amount in request.items()})
    return total


def group_writes(seen: ObservedJob, version: int) -> list[Write]:
    """Create the PodGroup of this version, bring it up to date, or remove the one of an older version."""
    job, group = seen.job, seen.group
    if group is None:
        return [Create(PODGROUPS, _body(seen, version))]
    if group_version(group) != version:
        return group_removal(seen)
    wanted = group_spec(seen)
    if not _differs(group, wanted):
        return []
    if seen.group is not None and group.spec.min_task_member:
        gone = dict.fromkeys(set(group.spec.min_task_member) - set(wanted["minTaskMember"]))
        wanted["minTaskMember"] = {**gone, **wanted["minTaskMember"]}
    wanted["minResources"] = {**dict.fromkeys(group.spec.min_resources or ()), **wanted["minResources"]}
    wanted.setdefault("priorityClassName", None)
    return [ApplyObject(PODGROUPS, job.metadata.namespace, group.metadata.name, {"spec": wanted})]


def group_removal(seen: ObservedJob) -> list[Write]:
    group = seen.group
    if group is None or group.metadata.deletion_timestamp is not None:
        return []
    return [Remove.of(PODGROUPS, group.metadata)]


def group_version(group: PodGroup) -> int:
    found = (group.metadata.annotations or {}).get(names.JOB_VERSION, "")
    return int(found) if found.isdigit() else -1


def _differs(group: PodGroup, wanted: dict[str, Any]) -> bool:
    spec = group.spec
    return (
        spec.min_member != wanted["minMember"]
        or (spec.min_task_member or {}) != wanted["minTaskMember"]
        or spec.queue != wanted["queue"]
        or spec.priority_class_name != wanted.get("priorityClassName", "")
        or resources.parse(spec.min_resources) != resources.parse(wanted["minResources"])
    )


def _body(seen: ObservedJob, version: int) -> dict[str, Any]:
    job = seen.job
    return {
        "metadata": {
            "name": group_name(job),
            "namespace": job.metadata.namespace,
            "labels": dict(job.metadata.labels or {}),
            "annotations": {**without_applied(job.metadata.annotations), names.JOB_VERSION: str(version)},
            "ownerReferences": [owned_by(JOBS, job.metadata)],
        },
        "spec": group_spec(seen),
    }
