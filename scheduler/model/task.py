"""A pod as the scheduler sees it.

The one rule: everything about a task that the pod's spec decides is computed once, here, when the pod is first seen;
what changes afterwards is its status and its node, and only :mod:`scheduler.model.cluster` and a statement change
those.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Hashable

from . import names, resources
from .demand import host_ports_of, requests_of, shape_of
from .objects import Pod
from .times import seconds


class TaskStatus(enum.IntEnum):
    """Where a task stands; the numbers are Volcano's (``api/types.go``), a union of some is a set of statuses."""

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
"""A set of statuses: ``status & statuses`` tells whether it is one of them."""

HOLDING: Statuses = TaskStatus.ALLOCATED | TaskStatus.BINDING | TaskStatus.BOUND | TaskStatus.RUNNING
"""Statuses that count as allocated to the queue (Volcano's ``AllocatedStatus``)."""
READY: Statuses = HOLDING | TaskStatus.SUCCEEDED
"""Statuses that count towards a gang's minimum."""
COMPLETED: Statuses = TaskStatus.SUCCEEDED | TaskStatus.FAILED


class Task:
    """One pod: what it asks, where it stands.

    ``request`` is what it holds once it runs, ``init_request`` what it needs to start (init containers included); both
    count one of ``pods``. ``status`` and ``node`` are the scheduler's belief (assumptions included), not the pod's
    status.
    """

    __slots__ = (
        "_identity",
        "assumed",
        "best_effort",
        "creation",
        "gated",
        "has_inter_pod_constraints",
        "host_ports",
        "index",
        "init_request",
        "is_disruption_target",
        "job",
        "key",
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

    def __init__(self, pod: Pod, job: str) -> None:
        meta, spec = pod.metadata, pod.spec
        annotations, labels = meta.annotations or {}, meta.labels or {}
        self.pod = pod
        self.key = meta.key
        self.uid = meta.uid
        self.name = meta.name
        self.namespace = meta.namespace
        self.job = job
        """Key of the PodGroup, or empty for a pod of none (a pod that only takes room)."""
        self.request, self.init_request = requests_of(pod)
        self.best_effort = resources.is_empty(self.request)
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
        """Whether it has terms about other pods: others may then be kept away by it."""
        self.creation = seconds(meta.creation_timestamp)
        self.started = seconds(pod.status.start_time)
        self.index = index_of(meta.name)
        self.place_in_job = (self.index, self.creation, self.key)
        """Among the tasks of its job, as far as no plugin has a say: compared as one, ten thousand times a cycle."""
        self.shape = shape_of(pod, self.request, self.init_request)
        """Tasks of one shape ask for the same and may go to the same nodes; what they differ in never decides where."""
        self.status, self.node = status_of(pod)
        self.nominated = pod.status.nominated_node_name
        self.is_disruption_target = _is_disruption_target(pod)
        """Whether its conditions say already that it has to go."""
        self.assumed = False
        """Whether ``status`` runs ahead of what the API has confirmed."""
        self._identity: Hashable = None

    @property
    def identity(self) -> Hashable:
        """What selectors of other pods can see of it: its namespace and labels."""
        if self._identity is None:
            self._identity = (self.namespace, frozenset((self.pod.metadata.labels or {}).items()))
        return self._identity

    def seen_again(self, pod: Pod) -> Task | None:
        """This task as a later version of the same pod shows it; None where more than its status and its node changed.

        Most events are of this kind, and computing requests and shape anew is what a pod event would cost most.
        """
        if not _same_but_status(self.pod, pod):
            return None
        again = Task.__new__(Task)
        for name in Task.__slots__:
            setattr(again, name, getattr(self, name))
        again.pod = pod
        again.started = seconds(pod.status.start_time)
        again.status, again.node = status_of(pod)
        again.nominated = pod.status.nominated_node_name
        again.is_disruption_target = _is_disruption_target(pod)
        again.assumed = False
        return again

    def __repr__(self) -> str:
        return f"<Task {self.key} {self.status.name} on {self.node or '-'}>"


def _same_but_status(old: Pod, new: Pod) -> bool:
    """Whether two versions of a pod differ at most in status, node and what the metadata has that we do not compute
    from.
    """
    before, after = old.metadata, new.metadata
    if (before.uid, before.labels, before.annotations) != (after.uid, after.labels, after.annotations):
        return False
    node, new.spec.node_name = new.spec.node_name, old.spec.node_name
    try:
        return old.spec == new.spec
    finally:
        new.spec.node_name = node


def job_key_of(pod: Pod) -> str:
    """The key of the PodGroup that the pod names, as its scheduling group or in an annotation; or empty.

    The PodGroup of a scheduling group is the one of that name that stands for it (controllers/podgroup).
    """
    annotations, own = pod.metadata.annotations or {}, pod.spec.scheduling_group
    named = (own and own.pod_group_name, annotations.get(names.GROUP_NAME), annotations.get(names.VOLCANO_GROUP_NAME))
    group = next(filter(None, named), "")
    return f"{pod.metadata.namespace}/{group}" if group else ""


def status_of(pod: Pod) -> tuple[TaskStatus, str]:
    """The status that the pod's own fields say, and its node (semantics: Volcano's ``getTaskStatus``)."""
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
    """The number at the end of a pod's name (``train-worker-12`` is 12), or -1: the order of tasks within a job."""
    match = re.search(r"-(\d+)$", name)
    return int(match.group(1)) if match else -1
