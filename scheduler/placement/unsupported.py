"""Constraints that pods and PodGroups may have and this scheduler does not honour.

The one rule: whoever has one waits, and is told the field; it is never placed against its wish.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import names
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.task import Task
from .volumes import unbound_claim

_GROUP = "scheduling.k8s.io/"
RESTART_ALL = "RestartAllContainers"
"""What only nodes that declare the feature can do; we do not read what nodes declare."""


def of_task(cluster: Cluster, task: Task) -> str:
    """The first field of the pod that we do not honour; empty if there is none."""
    return (
        next(_fields(task), "")
        or _other_group(cluster, task)
        or (unbound_claim(cluster, task) if task.pod.spec.volumes else "")
    )


def _fields(task: Task) -> Iterator[str]:
    spec = task.pod.spec
    if spec.resource_claims:
        yield "spec.resourceClaims"
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, container in enumerate(containers):
            if container.resources is not None and container.resources.claims:
                yield f"spec.{kind}[{index}].resources.claims"
            if any(rule.get("action") == RESTART_ALL for rule in container.restart_policy_rules or ()):
                yield f"spec.{kind}[{index}].restartPolicyRules ({RESTART_ALL})"
    if spec.host_network and spec.host_users is False:
        yield "spec.hostUsers (false, with hostNetwork)"
    if spec.workload_ref:
        yield "spec.workloadRef"
    for index, volume in enumerate(spec.volumes or ()):
        if volume.disk:
            yield f"spec.volumes[{index}].{volume.disk}"


def _other_group(cluster: Cluster, task: Task) -> str:
    """The scheduling group of a pod, where the PodGroup of its name does not stand for it; empty otherwise."""
    named = task.pod.spec.scheduling_group
    job = cluster.jobs.get(task.job)
    if named is None or job is None or job.group is None:
        return ""
    owners = job.group.metadata.owner_references or ()
    if any(it.api_version.startswith(_GROUP) and it.name == named.pod_group_name for it in owners):
        return ""
    return f"spec.schedulingGroup (there is another PodGroup {task.job} in scheduling.volcano.sh)"


def of_job(job: Job) -> str:
    """The field of the PodGroup that we do not honour; empty if there is none."""
    group = job.group
    if group is None:
        return ""
    if field := (group.metadata.annotations or {}).get(names.UNSUPPORTED):
        return field
    if group.spec.network_topology:
        return "spec.networkTopology"
    return "spec.subGroupPolicy" if group.spec.sub_group_policy else ""
