"""Constraints that pods and PodGroups may have and this scheduler does not honour.

The one rule: whoever has one waits, and is told the field; it is never placed against its wish.
"""

from __future__ import annotations

from scheduler.model.cluster import Cluster
from scheduler.model.job import Job
from scheduler.model.task import Task
from scheduler.placement.volumes import unbound_claim


def of_task(cluster: Cluster, task: Task) -> str:
    """The field of the pod that we do not honour; empty if there is none."""
    spec = task.pod.spec
    if spec.resource_claims:
        return "spec.resourceClaims"
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, container in enumerate(containers):
            if container.resources is not None and container.resources.claims:
                return f"spec.{kind}[{index}].resources.claims"
    if spec.workload_ref:
        return "spec.workloadRef"
    if spec.scheduling_group:
        return "spec.schedulingGroup"
    return unbound_claim(cluster, task) if spec.volumes else ""


def of_job(job: Job) -> str:
    """The field of the PodGroup that we do not honour; empty if there is none."""
    group = job.group
    if group is None:
        return ""
    if group.spec.network_topology:
        return "spec.networkTopology"
    return "spec.subGroupPolicy" if group.spec.sub_group_policy else ""
