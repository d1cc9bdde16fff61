"""The PodGroup of a Job: the gang that the scheduler sees.

The PodGroup follows the Job's spec. Its minResources cover `minMember` pods: each task's minimum, then by priority.
"""

from __future__ import annotations

from typing import Any

from ...kube.resource import PODGROUPS
from ...model import names, resources
from ...model.auxiliary import priority_of
from ...model.objects import NetworkTopology, PodGroup
from ...model.resources import Resource, quantities
from ..gang_job import group_update, is_outdated
from ..runtime.objects import JOBS, PartitionPolicy, TaskSpec, VolcanoJob
from ..runtime.pod_batches import MAX_WAITING, too_large
from ..runtime.pods import request_of, without_applied
from ..runtime.writes import Create, Remove, Write, owned_by
from .state import ObservedJob, min_available, task_minimum, tasks_of


def group_name(job: VolcanoJob) -> str:
    """Return the PodGroup's name, as in Volcano. It has the Job's uid, so that a Job never adopts its predecessor's."""
    return f"{job.metadata.name}-{job.metadata.uid}"


def group_spec(seen: ObservedJob) -> dict[str, Any]:
    job = seen.job
    spec: dict[str, Any] = {
        "minMember": _min_member(job),
        "minTaskMember": {task.name: _minimum(task) for task in tasks_of(job)},
        "queue": seen.queue,
        "minResources": quantities(min_resources(seen)),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if (topology := job.spec.network_topology) is not None:
        spec["networkTopology"] = _topology(topology)
    if parts := [_subgroups(task.name, task.partition_policy) for task in tasks_of(job) if task.partition_policy]:
        spec["subGroupPolicy"] = parts
    return spec


def _topology(topology: NetworkTopology) -> dict[str, Any]:
    fields = {
        "mode": topology.mode or "hard",
        "highestTierAllowed": topology.highest_tier_allowed,
        "highestTierName": topology.highest_tier_name or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _subgroups(task: str, policy: PartitionPolicy) -> dict[str, Any]:
    """Return the subGroupPolicy that defines a subgroup for each partition of a task."""
    found: dict[str, Any] = {
        "name": task,
        "labelSelector": {"matchLabels": {names.TASK_SPEC: task}},
        "matchLabelKeys": [names.PARTITION],
        "subGroupSize": policy.partition_size,
    }
    if policy.min_partitions is not None:
        found["minSubGroups"] = policy.min_partitions
    if policy.network_topology is not None:
        found["networkTopology"] = _topology(policy.network_topology)
    return found


def gang_problem(seen: ObservedJob) -> str:
    """Return why the Job's gang could never start; empty if it could."""
    members = _min_member(seen.job)
    return too_large(members, min_resources(seen), seen.limits) if members > MAX_WAITING else ""


def _min_member(job: VolcanoJob) -> int:
    """Return the number of pods that must be placed together.

    Tasks that depend on other tasks do not count; otherwise neither would ever start.
    """
    return min(min_available(job), sum(task.replicas for task in job.spec.tasks if not _has_dependencies(task)))


def _minimum(task: TaskSpec) -> int:
    return 0 if _has_dependencies(task) else task_minimum(task)


def _has_dependencies(task: TaskSpec) -> bool:
    return task.depends_on is not None and bool(task.depends_on.name)


def min_resources(seen: ObservedJob) -> Resource:
    """Return the total requests of the gang's pods: each task's minimum first, then by the tasks' priority."""
    job = seen.job
    tasks = sorted(
        tasks_of(job),
        key=lambda task: -priority_of(task.template.get("spec", {}).get("priorityClassName", ""), seen.classes),
    )
    left = _min_member(job)
    minima = {task.name: _minimum(task) for task in tasks}
    if left < sum(minima.values()):
        minima = dict.fromkeys(minima, 0)
    left -= sum(minima.values())
    total: Resource = {}
    for task in tasks:
        extra = 0 if _has_dependencies(task) else min(max(left, 0), task.replicas - minima[task.name])
        left -= extra
        pods = minima[task.name] + extra
        request = request_of(task.template) if pods else {}
        resources.add_to(total, {name: amount * pods for name, amount in request.items()})
    return total


def group_writes(seen: ObservedJob, version: int) -> list[Write]:
    """Return the writes for the PodGroup of this version: create it, update it, or remove an older one."""
    group = seen.group
    if group is None:
        return [Create(PODGROUPS, _body(seen, version))]
    if group_version(group) != version:
        return group_removal(seen)
    wanted = group_spec(seen)
    if not _differs(group, wanted):
        return []
    if group.spec.min_task_member:
        gone = dict.fromkeys(set(group.spec.min_task_member) - set(wanted["minTaskMember"]))
        wanted["minTaskMember"] = {**gone, **wanted["minTaskMember"]}
    return [group_update(group, wanted)]


def group_removal(seen: ObservedJob) -> list[Write]:
    group = seen.group
    if group is None or group.metadata.deletion_timestamp is not None:
        return []
    return [Remove.of(PODGROUPS, group.metadata)]


def group_version(group: PodGroup) -> int:
    found = (group.metadata.annotations or {}).get(names.JOB_VERSION, "")
    return int(found) if found.isdecimal() else -1


def _differs(group: PodGroup, wanted: dict[str, Any]) -> bool:
    spec = group.spec
    return (
        is_outdated(group, wanted)
        or (spec.min_task_member or {}) != wanted["minTaskMember"]
        or spec.queue != wanted["queue"]
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
