"""The kinds that a scenario is about, by the short names that the field's people use. Plain data, no I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple
from urllib.parse import quote


class Kind(StrEnum):
    """A kind of object that is watched in every scenario."""

    POD = "pod"
    NODE = "node"
    QUEUE = "queue"
    PODGROUP = "podgroup"
    VCJOB = "vcjob"
    """A Volcano Job, as against a Kubernetes Job."""
    COMMAND = "command"
    JOB = "job"
    DEPLOYMENT = "deployment"
    PYTORCHJOB = "pytorchjob"
    PRIORITYCLASS = "priorityclass"
    GANG = "podgroup.scheduling.k8s.io"
    """A PodGroup of Kubernetes itself, from 1.37 on."""
    GANG_ALPHA = "podgroup.v1alpha2.scheduling.k8s.io"
    """The same in 1.36."""
    EVENT = "event"


class Resource(NamedTuple):
    """How the API serves a kind."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The path of one object, of all in a namespace, or of all."""
        parts = [f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace)}")
        parts += [part for part in (self.plural, quote(name), subresource) if part]
        return "/".join(parts)


SERVED: Final[dict[Kind, Resource]] = {
    Kind.POD: Resource("v1", "Pod", "pods", True),
    Kind.NODE: Resource("v1", "Node", "nodes", False),
    Kind.QUEUE: Resource("scheduling.volcano.sh/v1beta1", "Queue", "queues", False),
    Kind.PODGROUP: Resource("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", True),
    Kind.VCJOB: Resource("batch.volcano.sh/v1alpha1", "Job", "jobs", True),
    Kind.COMMAND: Resource("bus.volcano.sh/v1alpha1", "Command", "commands", True),
    Kind.JOB: Resource("batch/v1", "Job", "jobs", True),
    Kind.DEPLOYMENT: Resource("apps/v1", "Deployment", "deployments", True),
    Kind.PYTORCHJOB: Resource("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", True),
    Kind.PRIORITYCLASS: Resource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False),
    Kind.GANG: Resource("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", True),
    Kind.GANG_ALPHA: Resource("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups", True),
    Kind.EVENT: Resource("v1", "Event", "events", True),
}

BUILT_IN_QUEUES: Final = ("root", "default")
"""The scheduler makes them, and they cannot be deleted."""

QUEUE_COMMAND_NAMESPACE: Final = "kube-system"
"""Where Commands to queues are written: the scheduler under test takes them from here only, as a tenant has no rights
here.
"""

OWNERS: Final = (Kind.VCJOB, Kind.PYTORCHJOB, Kind.JOB, Kind.DEPLOYMENT)
"""What makes pods, and would make them again: goes first when a scenario is cleaned up."""

GANGS: Final = (Kind.PODGROUP, Kind.GANG, Kind.GANG_ALPHA)
"""What makes a gang of pods, in the order in which it is looked for."""

_BY_API: Final = {(resource.api_version, resource.kind): kind for kind, resource in SERVED.items()}


def kind_of(obj: dict[str, Any]) -> Kind | None:
    """The kind of an object that names its apiVersion and kind; None if it is not one of ours."""
    return _BY_API.get((obj.get("apiVersion", ""), obj.get("kind", "")))


class Ref(NamedTuple):
    """Names an object for people and for look-ups. A successor of the same name has the same Ref."""

    kind: Kind
    name: str
    namespace: str = ""

    def path(self, subresource: str = "") -> str:
        """Where the API serves the object."""
        return SERVED[self.kind].path(self.name, self.namespace, subresource)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
