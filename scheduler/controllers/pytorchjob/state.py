"""What the PyTorchJob controller sees of one job at one moment, and what of it cannot be run.

The one rule: a field that nobody here honours is named and the job waits; nothing of a spec is quietly left out of
account. (Our own schema refuses the same; a cluster may have the training operator's instead.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...kube.resource import PODGROUPS, PODS
from ...model import names
from ...model.objects import Namespace, Pod, PodGroup, PriorityClass
from ..queue.state import DEFAULT, queue_for
from ..runtime.objects import PyTorchJob
from ..runtime.pods import controller_of
from ..runtime.slices import ANYWHERE, RoomLimits
from ..runtime.writes import Remove, Write
from .pods import MASTER, WORKER

RESTART_POLICIES = frozenset(("", "Always", "OnFailure", "Never", "ExitCode"))
CLEAN_POD_POLICIES = frozenset(("", "All", "Running", "None"))


@dataclass(frozen=True, slots=True)
class ObservedTraining:
    """One PyTorchJob and all that its reconciliation looks at."""

    job: PyTorchJob
    pods: Sequence[Pod] = ()
    group: PodGroup | None = None
    classes: Sequence[PriorityClass] = ()
    queue: str = DEFAULT
    """Where the job runs: what it names, its namespace, or a PodGroup that was there before."""
    place: RoomLimits = ANYWHERE
    """What the job's gang could have at most."""
    queue_problem: str = ""
    """Why nothing can run in that queue (not there, closed, has children), or empty."""
    scheduler_name: str = ""
    now: float = 0.0


def queue_of(job: PyTorchJob, group: PodGroup | None, home: Namespace | None) -> str:
    """Where a job runs: in the queue of the PodGroup that there is, or the one that it or its namespace names."""
    policy = job.spec.run_policy.scheduling_policy
    named = group.spec.queue if group is not None else policy.queue if policy is not None else ""
    return queue_for(named, group, home)


def unhonoured(job: PyTorchJob) -> str:
    """The fields of a job that we do not honour; empty where there are none."""
    return ", ".join(_fields(job))


def _fields(job: PyTorchJob) -> Iterator[str]:
    policy = job.spec.run_policy
    if job.spec.elastic_policy is not None:
        yield "spec.elasticPolicy"
    if policy.scheduling_policy is not None and policy.scheduling_policy.schedule_timeout_seconds is not None:
        yield "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"
    if policy.clean_pod_policy not in CLEAN_POD_POLICIES:
        yield f"spec.runPolicy.cleanPodPolicy ({policy.clean_pod_policy})"
    for kind, spec in job.spec.pytorch_replica_specs.items():
        if kind not in (MASTER, WORKER):
            yield f"spec.pytorchReplicaSpecs.{kind}"
        if spec.restart_policy not in RESTART_POLICIES:
            yield f"spec.pytorchReplicaSpecs.{kind}.restartPolicy ({spec.restart_policy})"


def type_of(pod: Pod) -> str:
    """The replica type that a pod was made for, in lower case."""
    return (pod.metadata.labels or {}).get(names.TRAINING_TYPE, "")


def removals(pods: Sequence[Pod]) -> list[Write]:
    return [Remove.of(PODS, pod.metadata) for pod in pods]


def group_removal(seen: ObservedTraining) -> list[Write]:
    group = seen.group
    if group is None or group.metadata.deletion_timestamp is not None or controller_of(group.metadata) is None:
        return []  # what a user made is the user's to remove
    return [Remove.of(PODGROUPS, group.metadata)]
