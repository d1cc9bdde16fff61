"""Limit how many pods of one job are created at a time, and reject gangs that could never be placed.

Whatever number a job names, the work that the job causes at once is bounded:

1. At most `max(minAvailable, MAX_WAITING)` pods of a job wait for a node at a time.
2. A reconciliation creates so few pods that it never blocks the event loop for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ...kube.resource import PODS
from ...model import resources
from ...model.objects import Node, Pod
from ...model.resources import Resource
from .objects import Template
from .writes import Create, Write

MAX_WAITING = 200
"""Maximum number of pods of a job that wait for a node, unless its gang is larger. A gang of this size or less is
never refused for its size, so that an autoscaler sees its pods.
"""
_BATCH = 64
"""Pods created in one reconciliation; each takes some 50 µs before its request is sent."""
_BATCH_BYTES = 64 * 1024
"""Bytes of templates copied in one reconciliation. One pod of the largest template (`pods.MAX_BYTES`) takes 3 ms."""


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Upper limits of the capacity for a gang: the whole cluster, and the capability of its queue and its ancestors."""

    cluster: Mapping[str, int] | None = None
    """The capacity of all nodes; None if it is unknown."""
    queues: Sequence[tuple[str, Mapping[str, int]]] = ()


NO_LIMITS = CapacityLimits()


def batch_size(pods: Sequence[Pod], minimum: int, templates: Iterable[Template]) -> int:
    """Return the maximum number of pods to create now, in addition to `pods`."""
    waiting = sum(1 for pod in pods if _waits(pod))
    largest = max((len(msgspec.json.encode(template)) for template in templates), default=0)
    batch = max(1, min(_BATCH, _BATCH_BYTES // max(largest, 1)))
    return max(min(max(minimum, MAX_WAITING) - waiting, batch), 0)


def _waits(pod: Pod) -> bool:
    ended = pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Succeeded", "Failed")
    return not pod.spec.node_name and not ended


def requeue_after(writes: Iterable[Write]) -> float | None:
    """Return 0 (requeue at once) if these writes create pods, because more may be missing; else None."""
    return 0.0 if any(isinstance(write, Create) and write.resource is PODS for write in writes) else None


def creation_order(tasks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (task, index) of all pods in the order of creation; `tasks` has (minimum, replicas) of each task.

    Every task's minimum comes first: otherwise a gang would wait for pods that do not exist yet. Then tasks alternate,
    so that a task that cannot be placed does not block the others.
    """
    for task, (minimum, replicas) in enumerate(tasks):
        yield from ((task, index) for index in range(min(minimum, replicas)))
    for index in range(max((replicas for _, replicas in tasks), default=0)):
        yield from ((task, index) for task, (minimum, replicas) in enumerate(tasks) if minimum <= index < replicas)


def too_large(members: int, needs: Mapping[str, int], limits: CapacityLimits) -> str:
    """Return why a gang of `members` pods could never start, whatever is evicted; empty if it could."""
    if members <= MAX_WAITING:
        return ""
    request = {**needs, resources.PODS: members}
    for name, limit in limits.queues:
        if over := _over(needs, limit):
            return f"{members} pods have to start together and exceed queue {name}'s capability: {over}; {_REMEDY}"
    if limits.cluster is not None and (over := _over(request, {name: limits.cluster.get(name, 0) for name in request})):
        return f"{members} pods have to start together and exceed the capacity of all nodes: {over}; {_REMEDY}"
    return ""


_REMEDY = "no pod is created; lower minAvailable, or add capacity"


def _over(needs: Mapping[str, int], limit: Mapping[str, int]) -> str:
    return ", ".join(
        f"{name} {resources.render_amount(name, amount)} > {resources.render_amount(name, limit[name])}"
        for name, amount in sorted(needs.items())
        if name in limit and amount > limit[name]
    )


class Capacity:
    """The total capacity of all nodes, updated change by change."""

    def __init__(self, selector: Mapping[str, str]) -> None:
        self._selector = dict(selector)
        self._total: Resource = {}

    def changed(self, before: Node | None, after: Node | None) -> bool:
        """Apply a change. Return True if it changes the capacity."""
        was, now = self._of(before), self._of(after)
        if was == now:
            return False
        for amounts, sign in ((was, -1), (now, 1)):
            for name, amount in amounts.items():
                self._total[name] = self._total.get(name, 0) + sign * amount
        return True

    @property
    def total(self) -> Resource:
        return dict(self._total)

    def _of(self, node: Node | None) -> Resource:
        if node is None:
            return {}
        labels = node.metadata.labels or {}
        if any(labels.get(key) != value for key, value in self._selector.items()):
            return {}
        try:
            return resources.parse(node.status.allocatable or node.status.capacity)
        except resources.QuantityError:
            return {}
