"""A task: a pod as the scheduler sees it.

Everything that depends on the pod's spec is computed once, when the pod is first seen. Later, only the task's status
and node change, and only `scheduler.model.cluster` and statements change them.

Amounts count only in resources that a node or a queue names. A request for a part of a card in percent counts as that
part of the cluster's smallest card, for waiting and for running pods. If the amount grew with the placement, it could
lift a queue above its share, and the pod would be evicted and placed again and again.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from . import names, resources
from .card_demand import CARD_RESOURCES, VGPU_MEMORY, demand_of
from .demand import PortNumbers, host_ports_of, requests_of, shape_of
from .objects import Pod
from .times import seconds


class NamedResources:
    """Count the resources that nodes and queues name, and keep the smallest card of each node."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter(dict.fromkeys((resources.CPU, resources.MEMORY, resources.PODS), 1))
        """Resource → number of nodes and queues that name it."""
        self._memory_on: dict[str, int] = {}
        """Node → memory of its smallest card."""
        self._memories: Counter[int] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @property
    def card_memory(self) -> int:
        """Memory of the smallest virtual GPU, in the unit of its resource; 0 if there is none or it does not count."""
        return min(self._memories, default=0) if VGPU_MEMORY in self._names else 0

    def update(self, now: Iterable[str], before: Iterable[str]) -> tuple[set[str], set[str]]:
        """Replace the resources that an object names; return the resources that became known, and became unknown."""
        more, less = set(now).difference(before), set(before).difference(now)
        added = {name for name in more if not self._names[name]}
        self._names.update(more)
        self._names.subtract(less)
        removed = {name for name in less if not self._names[name]}
        for name in removed:
            del self._names[name]
        return added, removed

    def set_card(self, node: str, memory: int) -> None:
        """Set the memory of the smallest card of a node; 0 if it has none."""
        before = self._memory_on.pop(node, 0)
        if before:
            self._memories[before] -= 1
            if not self._memories[before]:
                del self._memories[before]
        if memory:
            self._memory_on[node] = memory
            self._memories[memory] += 1


class TaskStatus(enum.IntEnum):
    """Status of a task. The numbers are Volcano's (`api/types.go`); a union of several is a set of statuses."""

    PENDING = 1
    ALLOCATED = 2
    PIPELINED = 4
    BINDING = 8
    BOUND = 16
    RUNNING = 32
    RELEASING = 64
    SUCCEEDED = 128
    FAILED = 256
    UNKNOWN = 512


Statuses = int
"""A set of statuses: `status & statuses` tests membership."""

HOLDING: Statuses = TaskStatus.ALLOCATED | TaskStatus.BINDING | TaskStatus.BOUND | TaskStatus.RUNNING
"""Statuses that count as allocated to the queue (Volcano's `AllocatedStatus`)."""
READY: Statuses = HOLDING | TaskStatus.SUCCEEDED
"""Statuses that count towards a gang's minimum."""
COMPLETED: Statuses = TaskStatus.SUCCEEDED | TaskStatus.FAILED


class Task:
    """One pod with its requests and its status.

    Attributes:
        request: What the pod holds while it runs, including `pods: 1`, without zero amounts. With `known`, only these
            resources count.
        init_request: What the pod needs to start, init containers included; otherwise like `request`.
        status: The scheduler's view, which includes its assumptions, not the pod's own status.
        node: The scheduler's view of the pod's node.
    """

    __slots__ = (
        "_identity",
        "_port_numbers",
        "assigned",
        "assumed",
        "best_effort",
        "cards",
        "creation",
        "gated",
        "has_inter_pod_constraints",
        "host_ports",
        "index",
        "init_request",
        "is_disruption_target",
        "job",
        "key",
        "missing",
        "name",
        "namespace",
        "never_preempts",
        "node",
        "nominated",
        "place_in_job",
        "pod",
        "preemptable",
        "priority",
        "request",
        "role",
        "shape",
        "started",
        "status",
        "uid",
    )

    def __init__(self, pod: Pod, job: str, known: NamedResources | None = None) -> None:
        meta, spec = pod.metadata, pod.spec
        annotations, labels = meta.annotations or {}, meta.labels or {}
        self._set_name(pod)
        self._set_state(pod)
        self.namespace = meta.namespace
        self.job = job
        """Key of the PodGroup; empty for a pod without one, which only occupies capacity."""
        self._count_requests(known)
        self.priority = spec.priority if spec.priority is not None else 1
        override = annotations.get(names.TASK_PRIORITY)
        if override is not None and re.fullmatch(r"[+-]?\d+", override):
            self.priority = int(override)
        self.role = annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC, "")
        wish = annotations.get(names.PREEMPTABLE, labels.get(names.PREEMPTABLE, "true"))
        self.preemptable = wish.lower() in ("true", "1", "t")
        self.never_preempts = spec.preemption_policy == "Never"
        self.gated = bool(spec.scheduling_gates)
        self.host_ports = host_ports_of(pod)
        affinity = spec.affinity
        self.has_inter_pod_constraints = bool(affinity and (affinity.pod_affinity or affinity.pod_anti_affinity))
        """Whether the pod has terms about other pods. Such a term may also keep the other pods off nodes."""
        self._identity: Hashable = None
        self._port_numbers: PortNumbers | None = None

    def _set_name(self, pod: Pod) -> None:
        meta = pod.metadata
        self.key = meta.key
        self.uid = meta.uid
        self.name = meta.name
        self.creation = seconds(meta.creation_timestamp)
        self.index = index_of(meta.name)
        self.place_in_job = (self.index, self.creation, self.key)
        """Order among the tasks of the job if no plugin decides. A tuple, as it is compared 10,000 times a cycle."""

    def _set_state(self, pod: Pod) -> None:
        self.pod = pod
        self.started = seconds(pod.status.start_time)
        self.status, self.node = status_of(pod)
        self.nominated = pod.status.nominated_node_name
        self.is_disruption_target = _is_disruption_target(pod)
        """Whether the pod's conditions mark it as a victim already."""
        self.assumed = False
        """Whether `status` is ahead of what the API has confirmed."""
        self.assigned: Mapping[str, str] = {}
        """Annotations that a bind in flight writes to the pod."""

    def _count_requests(self, known: NamedResources | None) -> None:
        """Count the requested amounts of known resources, and record the first unknown one."""
        request, init_request = requests_of(self.pod, known.card_memory if known is not None else 0)
        self.best_effort = resources.is_empty(request)
        self.cards = None if CARD_RESOURCES.isdisjoint(init_request) else demand_of(self.pod)
        """The pod's request for shared cards; None without one."""
        # A zero amount requests nothing. If it were kept, the shape would depend on the order of events: a zero amount
        # of an unknown resource is removed, and no later node or queue brings it back. Tasks of one shape share results
        # and reasons, so that the order in which a pod names resources must not count.
        request, init_request = (
            {name: amount for name, amount in sorted(amounts.items()) if amount} for amounts in (request, init_request)
        )
        self.missing = ""
        """The first requested resource that no node or queue names: no node can run the task."""
        if known is not None:
            unknown = [name for name in init_request if name not in known]
            if unknown:
                self.missing = min((name for name in unknown if init_request[name] > 0), default="")
                request = {name: amount for name, amount in request.items() if name in known}
                init_request = {name: amount for name, amount in init_request.items() if name in known}
        self.request, self.init_request = request, init_request
        self.shape = shape_of(self.pod, request, init_request, self.missing, self.cards)
        """Tasks of one shape have equal requests and can use the same nodes."""

    def recounted(self, known: NamedResources) -> Task:
        """Return a copy of this task that counts its requests in the resources known now."""
        again = self._copied()
        again._count_requests(known)
        return again

    def _copied(self) -> Task:
        again = Task.__new__(Task)
        for name in Task.__slots__:
            setattr(again, name, getattr(self, name))
        return again

    @property
    def placed_with(self) -> Mapping[str, str]:
        """The annotations written with the pod's bind; empty if the pod has neither a node nor a bind in flight."""
        return self.assigned or (self.pod.metadata.annotations or {} if self.pod.spec.node_name else {})

    @property
    def port_numbers(self) -> PortNumbers:
        """The host ports as sets."""
        if self._port_numbers is None:
            self._port_numbers = PortNumbers(self.host_ports)
        return self._port_numbers

    @property
    def identity(self) -> Hashable:
        """The namespace and labels, which selectors of other pods match."""
        if self._identity is None:
            self._identity = (self.namespace, frozenset((self.pod.metadata.labels or {}).items()))
        return self._identity

    def seen_again(self, pod: Pod) -> Task | None:
        """Return this task updated by a later version of the pod, or None if more than status and node changed.

        Most events are of this kind. Computing requests and shape again would be the main cost of a pod event.
        """
        if self.uid != pod.metadata.uid or not _same_but_status(self.pod, pod):
            return None
        again = self._copied()
        again._set_state(pod)
        return again

    def of_sibling(self, pod: Pod) -> Task | None:
        """Return the task of another pod of the job, or None if the pods differ in more than name and status.

        Most pods of a gang are equal. Their tasks share the requests and the shape, which cost most to compute.
        """
        if any(volume.ephemeral for volume in pod.spec.volumes or ()):  # their claims are named after the pod
            return None
        if not _same_but_status(self.pod, pod, besides=names.TASK_INDEX):
            return None
        sibling = self._copied()
        sibling._set_name(pod)
        sibling._set_state(pod)
        return sibling

    def __repr__(self) -> str:
        return f"<Task {self.key} {self.status.name} on {self.node or '-'}>"


def _same_but_status(old: Pod, new: Pod, besides: str = "") -> bool:
    """Whether two pods differ only in name, uid, status, node, annotation `besides`, and metadata that is not used."""
    before, after = old.metadata, new.metadata
    if before.labels != after.labels:
        return False
    if before.annotations != after.annotations and not (
        besides and _without(before.annotations, besides) == _without(after.annotations, besides)
    ):
        return False
    node, new.spec.node_name = new.spec.node_name, old.spec.node_name
    try:
        return old.spec == new.spec
    finally:
        new.spec.node_name = node


def _without(annotations: dict[str, str] | None, name: str) -> dict[str, str]:
    return {key: value for key, value in (annotations or {}).items() if key != name}


def job_key_of(pod: Pod) -> str:
    """Return the key of the PodGroup that the pod names by its scheduling group or an annotation; empty without one.

    For a scheduling group, this is the PodGroup of the same name that mirrors it (controllers/podgroup).
    """
    annotations, own = pod.metadata.annotations or {}, pod.spec.scheduling_group
    named = (
        own.pod_group_name if own else "",
        annotations.get(names.GROUP_NAME),
        annotations.get(names.VOLCANO_GROUP_NAME),
    )
    group = next(filter(None, named), "")
    return f"{pod.metadata.namespace}/{names.reference(group)}" if group else ""


def status_of(pod: Pod) -> tuple[TaskStatus, str]:
    """Return the status and the node from the pod's own fields (semantics: Volcano's `getTaskStatus`)."""
    node, deleted = pod.spec.node_name, pod.metadata.deletion_timestamp is not None
    match pod.status.phase:
        case "Running":
            return (TaskStatus.RELEASING if deleted else TaskStatus.RUNNING), node
        case "Pending":
            if deleted:
                return TaskStatus.RELEASING, node
            return (TaskStatus.BOUND if node else TaskStatus.PENDING), node
        case "Succeeded":
            return TaskStatus.SUCCEEDED, node
        case "Failed":
            return TaskStatus.FAILED, node
    return TaskStatus.UNKNOWN, node


def _is_disruption_target(pod: Pod) -> bool:
    return any(c.type == "DisruptionTarget" and c.status == "True" for c in pod.status.conditions or ())


def index_of(name: str) -> int:
    """Return the number at the end of a pod's name (12 for `train-worker-12`), or -1. It orders the tasks of a job."""
    match = re.search(r"-(\d+)$", name)
    return int(match.group(1)) if match else -1
