"""Define the kinds of API objects: path and struct of each. No other module builds the path of a resource."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from ..model import objects
from ..model.footprint import MAX_BYTES, check_size, kept_of_pod, refuse_large, request_of_large_pod
from ..model.objects import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)
Other = TypeVar("Other", bound=msgspec.Struct)


@dataclass(frozen=True)
class Resource(Generic[T]):
    """One kind of object.

    `struct` has a field `metadata: ObjectMeta`; it reads the fields that it names and skips others.

    >>> PODS.path("ns", "p", "binding")
    '/api/v1/namespaces/ns/pods/p/binding'
    >>> QUEUES.path(name="default")
    '/apis/scheduling.volcano.sh/v1beta1/queues/default'
    """

    group: str
    version: str
    plural: str
    kind: str
    struct: type[T]
    namespaced: bool = True
    optional: bool = False
    """Whether a kind that the server does not serve counts as a kind without objects."""
    trim: Callable[[T, int], T] | None = field(default=None, compare=False)
    """Returns the part of an object to keep, from the object and the size of its JSON in bytes. Raises ValueError if
    the object is too large.
    """
    most_bytes: int = field(default=MAX_BYTES, compare=False)
    """Bytes of memory that an object may take where `trim` is set."""
    read_large: Callable[[bytes | msgspec.Raw], T] = field(default=refuse_large, compare=False)
    """Returns what is kept of the JSON of an object with many values, where `trim` is set. Raises TooLargeError."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """Return `plural.group`, as in kubectl and RBAC."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """Return the path of the collection (of a namespace, or of all), of an object, or of a subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if sub:
            parts.append(sub)
        return "/".join(parts)

    def reading(self, other: type[Other]) -> Resource[Other]:
        """Return the same kind with another struct."""
        return Resource(self.group, self.version, self.plural, self.kind, other, self.namespaced, self.optional)

    def bounded(self, scheduler_names: Collection[str]) -> Resource[T]:
        """Return the same kind with `trim` set, which bounds the memory of an object. The result equals this resource.

        Nodes are kept whole: tenants do not create them.
        """
        if self.struct is objects.Pod:
            of_pod: Any = {
                "trim": partial(kept_of_pod, scheduler_names=scheduler_names),
                "read_large": request_of_large_pod,
            }
            return replace(self, **of_pod)
        if self.struct is objects.Node:
            return self
        most = self.most_bytes
        return replace(self, trim=partial(check_size, most=most), read_large=partial(refuse_large, most=most))

    @cached_property
    def bare(self) -> Resource[Bare]:
        """Return the same kind, with metadata only.

        Use the result for writes whose answer is not needed, and for objects that may be malformed.
        """
        return self.reading(Bare)


class Bare(objects.Object):
    """An object with metadata only."""

    metadata: ObjectMeta


_SCHEDULING = ("scheduling.volcano.sh", "v1beta1")

PODS = Resource("", "v1", "pods", "Pod", objects.Pod)
NODES = Resource("", "v1", "nodes", "Node", objects.Node, namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", objects.Namespace, namespaced=False)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", objects.PersistentVolume, namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", objects.PersistentVolumeClaim)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", objects.CSINode, namespaced=False)
EVENTS = Resource("", "v1", "events", "Event", Bare)
QUEUES = Resource(*_SCHEDULING, "queues", "Queue", objects.Queue, namespaced=False)
PODGROUPS = Resource(*_SCHEDULING, "podgroups", "PodGroup", objects.PodGroup)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", objects.PriorityClass, namespaced=False
)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", objects.ResourceQuota)
HYPER_NODES = Resource(
    "topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", objects.HyperNode, namespaced=False, optional=True
)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", objects.PodDisruptionBudget)

WATCHED: tuple[Resource[Any], ...] = (
    PRIORITY_CLASSES,
    NAMESPACES,
    QUEUES,
    PODGROUPS,
    NODES,
    PODS,
    BUDGETS,
    QUOTAS,
    VOLUMES,
    CLAIMS,
    CSI_NODES,
    HYPER_NODES,
)
"""The kinds of the scheduler's state; `model.state_kinds` defines how the state keeps each."""
