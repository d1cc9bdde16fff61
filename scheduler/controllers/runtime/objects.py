"""The API objects that only controllers read.

A pod template is kept as the plain mapping that the user wrote, so that no field is lost on its way into a pod.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...kube import resource
from ...kube.resource import Bare, Resource
from ...model import objects
from ...model.footprint import MAX_BYTES
from ...model.objects import Object, ObjectMeta, OwnerReference, Quantities

Template = dict[str, Any]
"""A PodTemplateSpec as JSON."""


class Policy(Object):
    """An `action` of a Job, after `timeout`, on `event(s)` or an `exit_code`."""

    action: str = ""
    event: str | None = None
    events: list[str] | None = None
    exit_code: int | None = None
    timeout: str | None = None


class DependsOn(Object):
    name: list[str] | None = None
    iteration: str = "all"


class PartitionPolicy(Object):
    """How a task is divided into equal parts that are gangs within the gang, with a topology of their own."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int | None = None
    network_topology: objects.NetworkTopology | None = None


class TaskSpec(Object):
    name: str = ""
    replicas: int = 1
    min_available: int | None = None
    max_retry: int = 3
    policies: list[Policy] | None = None
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None
    topology_policy: str = ""
    template: Template = msgspec.field(default_factory=dict)


class JobSpec(Object):
    scheduler_name: str = ""
    queue: str = "default"
    priority_class_name: str = ""
    min_available: int | None = None
    min_success: int | None = None
    max_retry: int = 3
    ttl_seconds_after_finished: int | None = None
    plugins: dict[str, list[str]] | None = None
    volumes: list[Any] | None = None
    network_topology: objects.NetworkTopology | None = None
    policies: list[Policy] | None = None
    tasks: list[TaskSpec] = msgspec.field(default_factory=list)


class JobState(Object, omit_defaults=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class TaskState(Object, omit_defaults=True):
    phase: dict[str, int] | None = None


class JobCondition(Object, omit_defaults=True):
    status: str = ""
    last_transition_time: str | None = None


class DelayedAction(Object, omit_defaults=True):
    """An action that waits for its policy's timeout (`until`, RFC 3339), or only for the action before it (empty)."""

    event: str = ""
    action: str = ""
    task: str = ""
    pod: str = ""
    until: str = ""


class JobStatus(Object, omit_defaults=True):
    state: JobState = msgspec.field(default_factory=JobState)
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    observed_generation: int = 0
    last_command: str = ""
    running_duration: str = ""
    controlled_resources: dict[str, str] | None = None
    task_status_count: dict[str, TaskState] | None = None
    conditions: list[JobCondition] | None = None
    delayed: list[DelayedAction] | None = None
    restarting: list[str] | None = None
    """Uids of pods that a partial restart replaces and that are not deleted yet."""


class VolcanoJob(Object):
    metadata: ObjectMeta
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class Command(Object):
    metadata: ObjectMeta
    action: str = ""
    target: OwnerReference = msgspec.field(default_factory=OwnerReference)


class SchedulingPolicy(Object):
    queue: str = ""
    priority_class: str = ""
    min_available: int | None = None
    min_resources: Quantities | None = None
    schedule_timeout_seconds: int | None = None


class RunPolicy(Object):
    clean_pod_policy: str = ""
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_by: str = ""
    scheduling_policy: SchedulingPolicy | None = None


class ReplicaSpec(Object):
    replicas: int = 1
    restart_policy: str = ""
    template: Template = msgspec.field(default_factory=dict)


class RendezvousSetting(Object):
    key: str = ""
    value: str = ""


class ElasticPolicy(Object):
    """How many workers a job may have; the settings of torch's rendezvous, which the pods get as variables."""

    min_replicas: int | None = None
    max_replicas: int | None = None
    rdzv_backend: str = ""
    rdzv_host: str = ""
    rdzv_port: int | None = None
    rdzv_id: str = ""
    rdzv_conf: list[RendezvousSetting] | None = None
    standalone: bool = False
    max_restarts: int | None = None
    n_proc_per_node: int | None = msgspec.field(default=None, name="nProcPerNode")
    metrics: list[Any] | None = None


class PyTorchJobSpec(Object):
    nproc_per_node: str = ""
    elastic_policy: ElasticPolicy | None = None
    run_policy: RunPolicy = msgspec.field(default_factory=RunPolicy)
    pytorch_replica_specs: dict[str, ReplicaSpec] = msgspec.field(default_factory=dict)


class PyTorchCondition(Object, omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class ReplicaStatus(Object, omit_defaults=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    selector: str = ""


class PyTorchJobStatus(Object, omit_defaults=True):
    conditions: list[PyTorchCondition] | None = None
    replica_statuses: dict[str, ReplicaStatus] | None = None
    start_time: str | None = None
    completion_time: str | None = None
    restarts: int = 0
    restarting: list[str] | None = None
    """Uids of failed pods that are counted in `restarts` and are not deleted yet."""


class PyTorchJob(Object):
    metadata: ObjectMeta
    spec: PyTorchJobSpec = msgspec.field(default_factory=PyTorchJobSpec)
    status: PyTorchJobStatus = msgspec.field(default_factory=PyTorchJobStatus)


class GangPolicy(Object):
    min_count: int = 1


class PodGroupPolicy(Object):
    """`basic` (each pod by itself) if `gang` is None."""

    gang: GangPolicy | None = None


class TopologyConstraints(Object):
    topology: list[Any] | None = None


class KubePodGroupSpec(Object):
    scheduling_policy: PodGroupPolicy = msgspec.field(default_factory=PodGroupPolicy)
    disruption_mode: str | dict[str, Any] | None = None
    """`Pod` or `PodGroup` in v1alpha2, `{single: {}}` or `{all: {}}` in v1beta1."""
    priority_class_name: str = ""
    scheduling_constraints: TopologyConstraints | None = None
    resource_claims: list[Any] | None = None
    parent_composite_pod_group_name: str | None = None
    preemption_policy: str | None = None


class KubePodGroupStatus(Object):
    conditions: list[objects.Condition] | None = None


class KubePodGroup(Object):
    """A PodGroup of Kubernetes itself (`scheduling.k8s.io`)."""

    metadata: ObjectMeta
    spec: KubePodGroupSpec = msgspec.field(default_factory=KubePodGroupSpec)
    status: KubePodGroupStatus = msgspec.field(default_factory=KubePodGroupStatus)


class WorkloadSpec(Object):
    replicas: int | None = None


class Workload(Object):
    """A ReplicaSet, StatefulSet or batch/v1 Job: the owner of plain pods."""

    metadata: ObjectMeta
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)


_WITH_TEMPLATES = 4 * MAX_BYTES
"""Maximum memory of a job in bytes: a template is kept as the user wrote it and takes about five times its JSON."""
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", VolcanoJob, most_bytes=_WITH_TEMPLATES)
COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", PyTorchJob, most_bytes=_WITH_TEMPLATES)
KUBE_PODGROUPS = tuple(
    Resource("scheduling.k8s.io", version, "podgroups", "PodGroup", KubePodGroup) for version in ("v1beta1", "v1alpha2")
)
"""By API version, the newest first: of Kubernetes 1.37 and of 1.36."""
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", Workload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", Workload)
BATCH_JOBS = Resource("batch", "v1", "jobs", "Job", Workload)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Bare)
SERVICES = Resource("", "v1", "services", "Service", Bare)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Bare)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", Bare)


class QueueSpec(objects.QueueSpec):
    """A queue's spec with its unsupported fields, so that they can be reported."""

    extend_clusters: list[Any] | None = None
    dequeue_strategy: str = ""
    dra: dict[str, Any] | None = None


class QueueStatus(objects.QueueStatus):
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    unknown: int = 0
    completed: int = 0


class ControlledQueue(objects.Queue):
    """A Queue with all fields that its controller reads."""

    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus = msgspec.field(default_factory=QueueStatus)


QUEUES = resource.QUEUES.reading(ControlledQueue)
