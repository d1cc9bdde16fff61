"""The kinds of objects that scenarios use, by short names. Plain data, no I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from . import spaces

GPU: Final = "nvidia.com/gpu"
"""The resource that scenarios call `gpus`."""


GPU_MEMORY: Final = "volcano.sh/gpu-memory"
"""A part of a shared card, in MiB."""
GPU_NUMBER: Final = "volcano.sh/gpu-number"
"""Whole cards, on nodes whose cards are shared by memory."""
VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES = (f"volcano.sh/vgpu-{of}" for of in ("number", "memory", "cores"))
"""Number of virtual GPUs; for each of them, MiB of memory and percent of the cores."""


class Kind(StrEnum):
    """A kind of object that is watched in every scenario."""

    POD = "pod"
    NODE = "node"
    QUEUE = "queue"
    PODGROUP = "podgroup"
    VCJOB = "vcjob"
    """A Volcano Job, in contrast to a Kubernetes Job."""
    COMMAND = "command"
    JOB = "job"
    DEPLOYMENT = "deployment"
    STATEFULSET = "statefulset"
    PYTORCHJOB = "pytorchjob"
    PRIORITYCLASS = "priorityclass"
    RESOURCEQUOTA = "resourcequota"
    LIMITRANGE = "limitrange"
    GANG = "podgroup.scheduling.k8s.io"
    """A PodGroup of Kubernetes, from 1.37 on."""
    GANG_ALPHA = "podgroup.v1alpha2.scheduling.k8s.io"
    """A PodGroup of Kubernetes 1.36."""
    WORKLOAD = "workload"
    """Kueue's object for a Job, a gang or a single pod, which Kueue admits and evicts."""
    CLUSTERQUEUE = "clusterqueue"
    LOCALQUEUE = "localqueue"
    COHORT = "cohort"
    RESOURCEFLAVOR = "resourceflavor"
    TOPOLOGY = "topology"
    WORKLOADPRIORITYCLASS = "workloadpriorityclass"
    ADMISSIONCHECK = "admissioncheck"
    """A condition of admission that Kueue leaves to another controller; in a scenario, to its sentences."""
    HYPERNODE = "hypernode"
    """A domain of the network: nodes that are close to each other."""
    KAI_QUEUE = "queue.scheduling.run.ai"
    """A queue of KAI, made from that of a scenario."""
    KAI_GROUP = "podgroup.scheduling.run.ai"
    """A PodGroup of KAI."""
    BINDREQUEST = "bindrequest"
    """KAI's decision to bind a pod."""
    EVENT = "event"


class Resource(NamedTuple):
    """How the API serves a kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Return the path of one object, of all objects in a namespace, or of all objects."""
        parts = [f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace)}")
        parts += [part for part in (self.plural, quote(name), subresource) if part]
        return "/".join(parts)


_KUEUE: Final = "kueue.x-k8s.io/v1beta2"

SERVED: Final[dict[Kind, Resource]] = {
    Kind.POD: Resource("v1", "Pod", "pods", True),
    Kind.NODE: Resource("v1", "Node", "nodes", False),
    Kind.QUEUE: Resource("scheduling.volcano.sh/v1beta1", "Queue", "queues", False),
    Kind.PODGROUP: Resource("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", True),
    Kind.VCJOB: Resource("batch.volcano.sh/v1alpha1", "Job", "jobs", True),
    Kind.COMMAND: Resource("bus.volcano.sh/v1alpha1", "Command", "commands", True),
    Kind.JOB: Resource("batch/v1", "Job", "jobs", True),
    Kind.DEPLOYMENT: Resource("apps/v1", "Deployment", "deployments", True),
    Kind.STATEFULSET: Resource("apps/v1", "StatefulSet", "statefulsets", True),
    Kind.PYTORCHJOB: Resource("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", True),
    Kind.PRIORITYCLASS: Resource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False),
    Kind.RESOURCEQUOTA: Resource("v1", "ResourceQuota", "resourcequotas", True),
    Kind.LIMITRANGE: Resource("v1", "LimitRange", "limitranges", True),
    Kind.GANG: Resource("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", True),
    Kind.GANG_ALPHA: Resource("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", True),
    Kind.WORKLOAD: Resource(_KUEUE, "Workload", "workloads", True),
    Kind.CLUSTERQUEUE: Resource(_KUEUE, "ClusterQueue", "clusterqueues", False),
    Kind.LOCALQUEUE: Resource(_KUEUE, "LocalQueue", "localqueues", True),
    Kind.COHORT: Resource(_KUEUE, "Cohort", "cohorts", False),
    Kind.RESOURCEFLAVOR: Resource(_KUEUE, "ResourceFlavor", "resourceflavors", False),
    Kind.TOPOLOGY: Resource(_KUEUE, "Topology", "topologies", False),
    Kind.WORKLOADPRIORITYCLASS: Resource(_KUEUE, "WorkloadPriorityClass", "workloadpriorityclasses", False),
    Kind.ADMISSIONCHECK: Resource(_KUEUE, "AdmissionCheck", "admissionchecks", False),
    Kind.HYPERNODE: Resource("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", False),
    Kind.KAI_QUEUE: Resource("scheduling.run.ai/v2", "Queue", "queues", False),
    Kind.KAI_GROUP: Resource("scheduling.run.ai/v2alpha2", "PodGroup", "podgroups", True),
    Kind.BINDREQUEST: Resource("scheduling.run.ai/v1alpha2", "BindRequest", "bindrequests", True),
    Kind.EVENT: Resource("v1", "Event", "events", True),
}

DEFAULT_QUEUE: Final = "default"
"""The queue of work that names none."""
BUILT_IN_QUEUES: Final = ("root", DEFAULT_QUEUE)
"""Queues that the scheduler creates and that cannot be deleted."""

WORLD: Final = "schedspec.dev/world"
"""Label of every node of a scenario."""

KUEUE_DEFAULT: Final = "schedspec-default"
"""Name of Kueue's objects for the queue `default`.

Not `default`: users often have such a ClusterQueue, and a LocalQueue `default` makes Kueue admit each Job as a whole.
"""

QUEUE_COMMAND_NAMESPACE: Final = "kube-system"
"""Namespace of Commands to queues. The scheduler under test accepts them only here, where tenants have no rights."""

LEVELS: Final = {"rack": "schedspec.dev/rack", "spine": "schedspec.dev/spine"}
"""Levels of the network in scenarios, the narrowest first, with the node label that names the domain."""

NODE_GROUP: Final = "volcano.sh/nodegroup-name"
"""Label with the group of a node, which queues may require or avoid."""

OWNERS: Final = (Kind.VCJOB, Kind.PYTORCHJOB, Kind.JOB, Kind.DEPLOYMENT, Kind.STATEFULSET)
"""Kinds that create pods and would create them again. The clean-up of a scenario deletes them first."""

GANGS: Final = (Kind.PODGROUP, Kind.GANG, Kind.GANG_ALPHA, Kind.WORKLOAD, Kind.KAI_GROUP)
"""Kinds that make pods a gang, in the order of look-up."""

_BY_API: Final = {(resource.api_version, resource.kind): kind for kind, resource in SERVED.items()}


def kind_of(obj: dict[str, Any]) -> Kind | None:
    """Return the kind of an object by its apiVersion and kind, or None if it is not one of ours."""
    return _BY_API.get((str(obj.get("apiVersion")), str(obj.get("kind"))))


class Ref(NamedTuple):
    """Reference to an object by kind, namespace and name. A successor of the same name has an equal Ref.

    The name of an object in a further namespace of a scenario begins with that namespace: `team-b/train`.
    """

    kind: Kind
    name: str
    namespace: str = ""

    def path(self, subresource: str = "") -> str:
        """Return the path at which the API serves the object."""
        namespace, name = spaces.real(self.namespace, self.name)
        return SERVED[self.kind].path(name, namespace, subresource)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
