"""The observed state of one PyTorchJob, and its fields that are not supported.

A PyTorchJob with such a field waits, and its status names the field: no field of a spec is ignored silently. (Our own
schema rejects such fields; a cluster may have the training operator's schema.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...kube.resource import PODGROUPS, PODS
from ...model import names
from ...model.objects import Namespace, Pod, PodGroup
from ..gang_job import ObservedGangJob
from ..queue.state import queue_for
from ..runtime.objects import ElasticPolicy, PyTorchJob
from ..runtime.pods import controller_of
from ..runtime.writes import Remove, Write
from .pods import MASTER, WORKER, bounds_of, total_of

RESTART_POLICIES = frozenset(("", "Always", "OnFailure", "Never", "ExitCode"))
CLEAN_POD_POLICIES = frozenset(("", "All", "Running", "None"))


ObservedTraining = ObservedGangJob[PyTorchJob]


def queue_of(job: PyTorchJob, group: PodGroup | None, namespace: Namespace | None) -> str:
    """Return a job's queue: that of its PodGroup, or the one that the job or its namespace names."""
    policy = job.spec.run_policy.scheduling_policy
    named = group.spec.queue if group is not None else policy.queue if policy is not None else ""
    return queue_for(named, group, namespace)


def unhonoured(job: PyTorchJob) -> str:
    """Return the fields of a job that are not supported; empty if there are none."""
    return ", ".join(_fields(job))


def _fields(job: PyTorchJob) -> Iterator[str]:
    policy = job.spec.run_policy
    if (elastic := job.spec.elastic_policy) is not None:
        yield from _of_elastic(job, elastic)
    if policy.scheduling_policy is not None and policy.scheduling_policy.schedule_timeout_seconds is not None:
        yield "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"
    if policy.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield f"spec.runPolicy.cleanPodPolicy ({policy.clean_pod_policy})"
    for kind, spec in job.spec.pytorch_replica_specs.items():
        if kind not in (MASTER, WORKER):
            yield f"spec.pytorchReplicaSpecs.{kind}"
        if spec.restart_policy not in RESTART_POLICIES:
            yield f"spec.pytorchReplicaSpecs.{kind}.restartPolicy ({spec.restart_policy})"


def _of_elastic(job: PyTorchJob, policy: ElasticPolicy) -> Iterator[str]:
    if policy.n_proc_per_node is not None:
        yield "spec.elasticPolicy.nProcPerNode"
    if policy.metrics is not None:
        yield "spec.elasticPolicy.metrics"
    least, most = bounds_of(job, policy)
    if WORKER not in job.spec.pytorch_replica_specs:
        yield "spec.elasticPolicy (without a Worker)"
    elif not least <= total_of(job) <= most:
        yield "spec.pytorchReplicaSpecs.Worker.replicas (outside of minReplicas and maxReplicas)"


def type_of(pod: Pod) -> str:
    """Return the replica type that a pod was created for, in lower case."""
    return (pod.metadata.labels or {}).get(names.TRAINING_TYPE, "")


def removals(pods: Sequence[Pod]) -> list[Write]:
    return [Remove.of(PODS, pod.metadata) for pod in pods]


def group_removal(seen: ObservedTraining) -> list[Write]:
    group = seen.group
    if group is None or group.metadata.deletion_timestamp is not None or controller_of(group.metadata) is None:
        return []  # users remove their own PodGroups
    return [Remove.of(PODGROUPS, group.metadata)]
