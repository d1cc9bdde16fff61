"""Kinds of objects as values: where the API serves them and which struct reads them.

The one rule: the path of a resource is made here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from ..model import objects
from ..model.objects import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)
Other = TypeVar("Other", bound=msgspec.Struct)


@dataclass(frozen=True)
class Resource(Generic[T]):
    """One kind of object. ``struct`` has a field ``metadata: ObjectMeta``; it reads what it names and skips the rest.

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

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """``plural.group``, as kubectl and RBAC name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The path of the collection (of a namespace, or of all), of an object, or of a subresource."""
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
        """The same kind, read by another struct."""
        return Resource(self.group, self.version, self.plural, self.kind, other, self.namespaced)

    @cached_property
    def bare(self) -> Resource[Bare]:
        """The same kind, of which only the metadata is read: for writes whose answer nobody looks at. It may be about
        an object that cannot be read.
        """
        return self.reading(Bare)


class Bare(objects.Object):
    """An object of which only the metadata is read."""

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
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", objects.PodDisruptionBudget)
