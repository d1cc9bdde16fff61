"""Find constraints of pods and PodGroups that this scheduler does not support.

A pod with such a constraint waits, with the field as the reason; it is never placed in violation of the constraint.
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
"""A restart action that needs a feature which nodes declare; the scheduler does not read these declarations."""


def of_task(cluster: Cluster, task: Task) -> str:
    """Return the first unsupported field of the pod; empty if there is none."""
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
            rules = container.restart_policy_rules
            if rules and any(rule.get("action") == RESTART_ALL for rule in rules):
                yield f"spec.{kind}[{index}].restartPolicyRules ({RESTART_ALL})"
    if spec.host_network and spec.host_users is False:
        yield "spec.hostUsers (false, with hostNetwork)"
    if spec.workload_ref:
        yield "spec.workloadRef"
    for index, volume in enumerate(spec.volumes or ()):
        if volume.disk:
            yield f"spec.volumes[{index}].{volume.disk}"


def _other_group(cluster: Cluster, task: Task) -> str:
    """Return the field if the job's PodGroup does not mirror the scheduling group of the pod; empty otherwise."""
    named = task.pod.spec.scheduling_group
    job = cluster.jobs.get(task.job)
    if named is None or job is None or job.group is None:
        return ""
    owners = job.group.metadata.owner_references or ()
    if any(owner.api_version.startswith(_GROUP) and owner.name == named.pod_group_name for owner in owners):
        return ""
    return f"spec.schedulingGroup (there is another PodGroup {task.job} in scheduling.volcano.sh)"


def of_job(job: Job, *, topology: bool) -> str:
    """Return the unsupported field of the PodGroup; empty if there is none. `topology`: a plugin honours domains."""
    group = job.group
    if group is None:
        return ""
    if field := (group.metadata.annotations or {}).get(names.UNSUPPORTED):
        return field
    if topology:
        return ""
    if names.TOPOLOGY_KEY in (group.metadata.annotations or {}):
        return "spec.schedulingConstraints.topology"
    if group.spec.network_topology is not None:
        return "spec.networkTopology"
    return "spec.subGroupPolicy" if group.spec.sub_group_policy else ""
