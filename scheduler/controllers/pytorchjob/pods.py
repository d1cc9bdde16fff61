"""Build the pods of a PyTorchJob, its PodGroup, and the service by which pods find their master.

Names, labels and environment are those of Kubeflow's training operator (`pkg/controller.v1/pytorch`,
`pkg/controller.v1/common`), so that training scripts run here unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...model import names, resources
from ...model.auxiliary import priority_of
from ...model.objects import PriorityClass, Quantities
from ...model.resources import Resource, quantities
from ..runtime.objects import PYTORCH_JOBS, SERVICES, ElasticPolicy, PyTorchJob, ReplicaSpec
from ..runtime.pod_batches import MAX_WAITING, CapacityLimits, too_large
from ..runtime.pods import add_environment, copy_of, request_of, without_applied
from ..runtime.writes import Create, owned_by

MASTER, WORKER = "Master", "Worker"
CONTAINER, PORT_NAME, PORT = "pytorch", "pytorchjob-port", 23456
MANAGER = "schedspec-pytorchjob-controller"


def replicas_of(job: PyTorchJob) -> Iterator[tuple[str, ReplicaSpec]]:
    """Yield replica types in the order of their ranks, the master first."""
    for kind in (MASTER, WORKER):
        if (spec := job.spec.pytorch_replica_specs.get(kind)) is not None:
            yield kind, spec


def total_of(job: PyTorchJob) -> int:
    return sum(spec.replicas for _, spec in replicas_of(job))


def leader_of(job: PyTorchJob) -> str:
    """Return the replica type whose first pod is the rendezvous host and whose success is the job's: master, if any."""
    return MASTER if MASTER in job.spec.pytorch_replica_specs else WORKER


def pod_name(job: PyTorchJob, kind: str, index: int) -> str:
    return f"{job.metadata.name}-{kind.lower()}-{index}"


def labels_of(job: PyTorchJob, kind: str, index: int) -> dict[str, str]:
    labels = {
        names.TRAINING_JOB: job.metadata.name,
        names.TRAINING_OPERATOR: "pytorchjob-controller",
        names.TRAINING_TYPE: kind.lower(),
        names.TRAINING_INDEX: str(index),
    }
    return {**labels, names.TRAINING_ROLE: "master"} if kind == MASTER else labels


def pod_body(job: PyTorchJob, kind: str, spec: ReplicaSpec, index: int, scheduler_name: str) -> dict[str, Any]:
    """Return one pod of a replica type."""
    metadata, pod = copy_of(spec.template)
    pod["schedulerName"] = pod.get("schedulerName") or scheduler_name
    policy = spec.restart_policy or "OnFailure"
    pod["restartPolicy"] = "Never" if policy == "ExitCode" else policy
    priority = job.spec.run_policy.scheduling_policy
    if priority is not None and priority.priority_class and not pod.get("priorityClassName"):
        pod["priorityClassName"] = priority.priority_class
    add_environment(pod, environment(job, kind, index))
    marks = {names.GROUP_NAME: job.metadata.name, names.TASK_SPEC: kind.lower()}
    return {
        "metadata": {
            "name": pod_name(job, kind, index),
            "namespace": job.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **labels_of(job, kind, index)},
            "annotations": {**(metadata.get("annotations") or {}), **marks},
            "ownerReferences": [owned_by(PYTORCH_JOBS, job.metadata)],
        },
        "spec": pod,
    }


def environment(job: PyTorchJob, kind: str, index: int) -> list[dict[str, str]]:
    """Return the variables of `torch.distributed` and `torchrun`: the master, the number of pods, and the rank."""
    leader = leader_of(job)
    rank = index + 1 if kind == WORKER and leader == MASTER else index
    processes = job.spec.nproc_per_node
    world = total_of(job) * (int(processes) if processes.isdecimal() else 1)
    address, port = pod_name(job, leader, 0), str(_port(job))
    found = {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(world),
        "RANK": str(rank),
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
        "PET_NNODES": str(total_of(job)),
        "PET_NODE_RANK": str(rank),
    }
    found["PET_NPROC_PER_NODE"] = processes or "auto"
    if job.spec.elastic_policy is not None:
        found |= _rendezvous(job, job.spec.elastic_policy)
    return [{"name": name, "value": value} for name, value in found.items()]


def _rendezvous(job: PyTorchJob, policy: ElasticPolicy) -> dict[str, str]:
    """Return the variables of an elastic job: its bounds, and where and how its pods find each other."""
    least, most = bounds_of(job, policy)
    host, port = policy.rdzv_host or pod_name(job, leader_of(job), 0), policy.rdzv_port or _port(job)
    found = {
        "PET_NNODES": f"{least}:{most}",
        "PET_RDZV_BACKEND": policy.rdzv_backend or "c10d",
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
    }
    found |= {"PET_RDZV_ID": policy.rdzv_id} if policy.rdzv_id else {}
    found |= {"PET_MAX_RESTARTS": str(policy.max_restarts)} if policy.max_restarts is not None else {}
    found |= {"PET_STANDALONE": ""} if policy.standalone else {}
    settings = ",".join(f"{it.key}={it.value}" for it in policy.rdzv_conf or ())
    return found | ({"PET_RDZV_CONF": settings} if settings else {})


def service_of(job: PyTorchJob) -> Create:
    """Return the headless service whose name resolves to the first pod."""
    leader = leader_of(job)
    selector = {key: value for key, value in labels_of(job, leader, 0).items() if key != names.TRAINING_ROLE}
    body = {
        "metadata": {
            "name": pod_name(job, leader, 0),
            "namespace": job.metadata.namespace,
            "labels": labels_of(job, leader, 0),
            "ownerReferences": [owned_by(PYTORCH_JOBS, job.metadata)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": selector,
            "publishNotReadyAddresses": True,
            "ports": [{"name": PORT_NAME, "port": _port(job)}],
        },
    }
    return Create(SERVICES, body)


def _port(job: PyTorchJob) -> int:
    spec = job.spec.pytorch_replica_specs[leader_of(job)].template.get("spec") or {}
    for container in spec.get("containers", ()):
        for port in (container.get("ports") or ()) if container.get("name") == CONTAINER else ():
            if port.get("name") == PORT_NAME:
                return int(port["containerPort"])
    return PORT


# ------------------------------------------------------------------------------------------------------------ PodGroup


def bounds_of(job: PyTorchJob, policy: ElasticPolicy) -> tuple[int, int]:
    """Return the smallest and the largest number of pods of an elastic job.

    The policy counts workers. A bound that it does not give is the number of workers.
    """
    workers = job.spec.pytorch_replica_specs[WORKER].replicas if WORKER in job.spec.pytorch_replica_specs else 0
    bounds = (policy.min_replicas, policy.max_replicas)
    least, most = (workers if bound is None else bound for bound in bounds)
    masters = total_of(job) - workers
    return least + masters, most + masters


def minimum_of(job: PyTorchJob) -> int:
    """Return the number of pods that must be placed together: all of them, or the fewest of an elastic job."""
    policy = job.spec.run_policy.scheduling_policy
    if policy is not None and policy.min_available is not None:
        return policy.min_available
    return bounds_of(job, job.spec.elastic_policy)[0] if job.spec.elastic_policy is not None else total_of(job)


def gang_problem(job: PyTorchJob, classes: Mapping[str, PriorityClass], limits: CapacityLimits) -> str:
    """Return why the job's gang could never start; empty if it could."""
    members = minimum_of(job)
    return too_large(members, min_resources(job, members, classes), limits) if members > MAX_WAITING else ""


def group_spec(job: PyTorchJob, queue: str, classes: Mapping[str, PriorityClass]) -> dict[str, Any]:
    """Return the PodGroup's spec, in a queue. A gang that needs only a part of the pods needs the master among them."""
    policy = job.spec.run_policy.scheduling_policy
    minimum = minimum_of(job)
    given: Quantities | None = policy.min_resources if policy else None
    needed = resources.parse(given) if given else min_resources(job, minimum, classes)
    spec: dict[str, Any] = {"minMember": minimum, "queue": queue, "minResources": quantities(needed)}
    if policy is not None and policy.priority_class:
        spec["priorityClassName"] = policy.priority_class
    if minimum < total_of(job) and MASTER in job.spec.pytorch_replica_specs:
        spec["minTaskMember"] = {MASTER.lower(): 1}
    return spec


def min_resources(job: PyTorchJob, minimum: int, classes: Mapping[str, PriorityClass]) -> Resource:
    """Return the sum of the requests of `minimum` pods, counted from the highest priority down."""
    ordered = sorted(
        replicas_of(job),
        key=lambda pair: -priority_of((pair[1].template.get("spec") or {}).get("priorityClassName", ""), classes),
    )
    total: Resource = {}
    left = minimum
    for _, spec in ordered:
        pods = min(left, spec.replicas)
        left -= pods
        resources.add_to(total, {name: amount * pods for name, amount in request_of(spec.template).items()})
    return total


def group_body(job: PyTorchJob, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": job.metadata.name,
        "namespace": job.metadata.namespace,
        "annotations": without_applied(job.metadata.annotations),
        "ownerReferences": [owned_by(PYTORCH_JOBS, job.metadata)],
    }
    return {"metadata": metadata, "spec": spec}
