"""The pods of a Job: which are missing, and how each is built from its task's template.

A pod's name (`job-task-index`) and annotations identify what the pod was created for. The controller stores nothing
else about it.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import islice
from typing import Any

from ...kube.resource import PODS
from ...model import names
from ..runtime.objects import JOBS, TaskSpec
from ..runtime.pod_batches import batch_size, creation_order
from ..runtime.pods import add_environment, copy_of
from ..runtime.writes import Create, owned_by
from .plugins import add_svc
from .state import Census, ObservedJob, min_available, pod_name, task_minimum, tasks_of


def missing_pods(seen: ObservedJob, group: str, version: int, census: Census) -> list[Create]:
    """Return the next batch of missing pods. The name of a terminating pod is not free yet."""
    existing = {pod.metadata.name for pod in seen.pods}
    tasks = list(tasks_of(seen.job))
    ready = {task.name for task in tasks if census.of_task(task.name, "Running", "Succeeded") >= task_minimum(task)}
    tasks = [task for task in tasks if _may_start(task, ready)]
    number = batch_size(seen.pods, min_available(seen.job), (task.template for task in tasks))
    order = creation_order([(task_minimum(task), task.replicas) for task in tasks])
    wanted = ((tasks[task], index) for task, index in order)
    missing = ((task, index) for task, index in wanted if pod_name(seen.job, task.name, index) not in existing)
    return [Create(PODS, pod_body(seen, task, index, group, version)) for task, index in islice(missing, number)]


def _may_start(task: TaskSpec, ready: Set[str]) -> bool:
    """Whether the tasks that this task depends on (all, or any) have their minimum of running or succeeded pods."""
    if task.depends_on is None or not task.depends_on.name:
        return True
    met = [name in ready for name in task.depends_on.name]
    return any(met) if task.depends_on.iteration == "any" else all(met)


def pod_body(seen: ObservedJob, task: TaskSpec, index: int, group: str, version: int) -> dict[str, Any]:
    """Return one pod. The template's own values are kept, except for those that identify the pod as this Job's."""
    job = seen.job
    metadata, spec = copy_of(task.template)
    marks = {
        names.TASK_SPEC: task.name,
        names.JOB_NAME: job.metadata.name,
        names.JOB_QUEUE: seen.queue,
        names.TASK_INDEX: str(index),
    }
    annotations = {
        **_inherited(job.metadata.annotations),
        **(metadata.get("annotations") or {}),
        **marks,
        names.GROUP_NAME: group,
        names.JOB_VERSION: str(version),
        names.TEMPLATE: f"{job.metadata.name}-{task.name}",
    }
    labels = {
        **_inherited(job.metadata.labels),
        **(metadata.get("labels") or {}),
        **marks,
        names.JOB_NAMESPACE: job.metadata.namespace,
    }
    if task.partition_policy is not None:
        labels[names.PARTITION] = str(index // task.partition_policy.partition_size)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name or seen.scheduler_name
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    add_environment(
        spec, [{"name": "VC_TASK_INDEX", "value": str(index)}, {"name": "VK_TASK_INDEX", "value": str(index)}]
    )
    add_svc(job, pod_name(job, task.name, index), spec)
    return {
        "metadata": {
            "name": pod_name(job, task.name, index),
            "namespace": job.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owned_by(JOBS, job.metadata)],
        },
        "spec": spec,
    }


def _inherited(given: dict[str, str] | None) -> dict[str, str]:
    """Return the annotations or labels that a Job passes on to its pods."""
    return {names.PREEMPTABLE: given[names.PREEMPTABLE]} if given and names.PREEMPTABLE in given else {}
