"""Store the objects of a virtual cluster as etcd and the API machinery do: versions, owners, graceful deletion.

An object is never changed in place; each change creates a new version, of which every listener is notified before the
call returns.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...scheduler.model.times import timestamp

Object = dict[str, Any]


class Kind(NamedTuple):
    """A kind as the API serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True
    has_status: bool = True
    """Whether the status is a subresource."""


class Key(NamedTuple):
    """The namespace and name of an object."""

    namespace: str
    name: str


class RefusedError(Exception):
    """The API server refuses a request, with an HTTP status and, for an invalid object, its fields."""

    def __init__(self, status: int, reason: str, message: str, fields: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.fields = status, reason, message, tuple(fields)


Listener = Callable[[Kind, str, Object], None]
"""Receives the kind; ADDED, MODIFIED or DELETED; the object."""
_KEPT = 1000
"""Number of the last changes of a kind that a watch may begin with."""
DEFAULT_GRACE = 30


class Store:
    """Objects by kind and key. `clock` returns the virtual time in seconds since the epoch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._objects: dict[Kind, dict[Key, Object]] = defaultdict(dict)
        self._owned: dict[str, set[tuple[Kind, Key]]] = defaultdict(set)
        """Uid of an owner → its dependents."""
        self._listeners: dict[Kind | None, list[Listener]] = defaultdict(list)
        self._changes: dict[Kind, deque[tuple[str, Object]]] = defaultdict(lambda: deque(maxlen=_KEPT))
        """The last changes of each kind."""
        self._forgotten: dict[Kind, int] = defaultdict(int)
        """The version of the last change of each kind that is not kept any more."""
        self._numbers = itertools.count(1)
        self._version = 0

    @property
    def version(self) -> str:
        """The resource version of the last change."""
        return str(self._version)

    def add_listener(self, listener: Listener, kind: Kind | None = None) -> None:
        """Notify a listener of each later change, of one kind or of all. Listeners of one kind are notified first."""
        self._listeners[kind].append(listener)

    def remove_listener(self, listener: Listener, kind: Kind | None = None) -> None:
        """Stop notifying a listener."""
        self._listeners[kind].remove(listener)

    def since(self, kind: Kind, version: str) -> list[tuple[str, Object]]:
        """Return the changes of a kind after a version; all objects as added if it is empty. Raises RefusedError."""
        if version in ("", "0"):
            return [("ADDED", item) for item in self.all(kind)]
        if int(version) < self._forgotten[kind]:
            raise RefusedError(410, "Expired", f"too old resource version: {version} ({self._forgotten[kind]})")
        return [(change, item) for change, item in self._changes[kind] if _version(item) > int(version)]

    def get(self, kind: Kind, key: Key) -> Object | None:
        return self._objects[kind].get(key)

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """Return the objects of a kind (in a namespace), in the order of their keys."""
        found = self._objects[kind]
        return [found[key] for key in sorted(found) if not namespace or key.namespace == namespace]

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Object]]:
        """Yield every object in a namespace."""
        for kind, found in list(self._objects.items()):
            for key in sorted(found):
                if key.namespace == namespace:
                    yield kind, found[key]

    def owned_by(self, uid: str) -> list[tuple[Kind, Key]]:
        """Return the dependents of an owner."""
        return sorted(self._owned.get(uid, ()))

    # ---------------------------------------------------------------------------------------------------- changing

    def create(self, kind: Kind, body: Object) -> Object:
        """Add an object that has a name. Raises RefusedError if it exists."""
        meta = body["metadata"]
        key = Key(meta.get("namespace", "") if kind.namespaced else "", meta["name"])
        if key in self._objects[kind]:
            raise RefusedError(409, "AlreadyExists", f'{kind.plural} "{key.name}" already exists')
        number = next(self._numbers)
        made = {
            **meta,
            "uid": f"00000000-0000-4000-8000-{number:012x}",
            "creationTimestamp": timestamp(self.clock()),
            "generation": 1,
        }
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            made.pop(name, None)
        if not kind.namespaced:
            made.pop("namespace", None)
        new = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": made}
        for owner in made.get("ownerReferences") or ():
            self._owned[owner["uid"]].add((kind, key))
        return self._put(kind, key, "ADDED", new)

    def change(self, kind: Kind, key: Key, new: Object) -> Object:
        """Replace an object by a new version, unless the two are equal.

        If the object was being deleted and has no finalizers any more, it is removed.
        """
        old = self._objects[kind][key]
        kept = {name: old["metadata"][name] for name in ("uid", "creationTimestamp", "resourceVersion", "generation")}
        new = {**new, "metadata": {**new["metadata"], **kept}}
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        changed = self._put(kind, key, "MODIFIED", new)
        meta = new["metadata"]
        if meta.get("deletionTimestamp") and old["metadata"].get("finalizers") and not meta.get("finalizers"):
            self.remove(kind, key)
        return changed

    def mark_deleted(self, kind: Kind, key: Key, grace: int) -> Object:
        """Set the deletion timestamp; a shorter grace period replaces a longer one."""
        old = self._objects[kind][key]
        meta = old["metadata"]
        known = meta.get("deletionGracePeriodSeconds")
        if meta.get("deletionTimestamp") and (known is None or known <= grace):
            return old
        moment = {"deletionTimestamp": timestamp(self.clock() + grace), "deletionGracePeriodSeconds": grace}
        return self._put(kind, key, "MODIFIED", {**old, "metadata": {**meta, **moment}})

    def remove(self, kind: Kind, key: Key) -> None:
        """Remove an object."""
        old = self._objects[kind].pop(key, None)
        if old is None:
            return
        for owner in old["metadata"].get("ownerReferences") or ():
            self._owned[owner["uid"]].discard((kind, key))
        self._version += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self._version)}}
        self._notify(kind, "DELETED", last)

    def _put(self, kind: Kind, key: Key, change: str, new: Object) -> Object:
        self._version += 1
        new["metadata"] = {**new["metadata"], "resourceVersion": str(self._version)}
        self._objects[kind][key] = new
        self._notify(kind, change, new)
        return new

    def _notify(self, kind: Kind, change: str, item: Object) -> None:
        kept = self._changes[kind]
        if len(kept) == _KEPT:
            self._forgotten[kind] = _version(kept[0][1])
        kept.append((change, item))
        for listener in (*self._listeners[kind], *self._listeners[None]):
            listener(kind, change, item)


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


PODS = Kind("v1", "Pod", "pods")
NODES = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
EVENTS = Kind("v1", "Event", "events", has_status=False)
PRIORITY_CLASSES = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False, has_status=False)
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SETS = Kind("apps/v1", "ReplicaSet", "replicasets")
BATCH_JOBS = Kind("batch/v1", "Job", "jobs")
STATEFUL_SETS = Kind("apps/v1", "StatefulSet", "statefulsets")
RESOURCE_QUOTAS = Kind("v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Kind("v1", "LimitRange", "limitranges", has_status=False)
_ADMISSION = "admissionregistration.k8s.io/v1"
ADMISSION_POLICIES = Kind(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
QUEUES = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)

SERVED = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    PRIORITY_CLASSES,
    DEPLOYMENTS,
    REPLICA_SETS,
    BATCH_JOBS,
    QUEUES,
    Kind("v1", "ServiceAccount", "serviceaccounts", has_status=False),
    Kind("v1", "ConfigMap", "configmaps", has_status=False),
    Kind("v1", "Secret", "secrets", has_status=False),
    Kind("v1", "Service", "services"),
    Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    STATEFUL_SETS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    ADMISSION_POLICIES,
    Kind(_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False, has_status=False),
    Kind("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", namespaced=False),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", has_status=False),
    Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    Kind("batch.volcano.sh/v1alpha1", "Job", "jobs"),
    Kind("bus.volcano.sh/v1alpha1", "Command", "commands", has_status=False),
    Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
)
BY_PATH = {(kind.api_version, kind.plural): kind for kind in SERVED}
