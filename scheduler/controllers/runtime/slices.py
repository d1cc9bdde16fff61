"""How many pods of one job are made at a time, and whether its gang could ever find room.

The one rule: whatever number a job names, what is done about it at once is bounded: pods are made in slices, at most
``max(minAvailable, AHEAD)`` ahead of those that have a node, and a turn of a controller makes few enough of them that
the event loop is never held for long.
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

AHEAD = 200
"""Pods of a job that may wait for a node, where its gang is no larger; a gang of at most as many is never refused for
its size, so that an autoscaler sees its pods.
"""
_TURN = 64
"""Pods made in one turn; each takes some 50 µs before its request is sent."""
_TURN_BYTES = 64 * 1024
"""Of templates copied in one turn; of the largest that are taken (:data:`.pods.MOST_BYTES`) one pod takes 3 ms."""


@dataclass(frozen=True, slots=True)
class RoomLimits:
    """What a gang could have at most: the whole cluster, and what its queue and each queue above it may hold."""

    cluster: Mapping[str, int] | None = None
    """None: not known."""
    queues: Sequence[tuple[str, Mapping[str, int]]] = ()


ANYWHERE = RoomLimits()


def slice_of(pods: Sequence[Pod], minimum: int, templates: Iterable[Template]) -> int:
    """How many pods to make now, at most, where ``pods`` are there."""
    waiting = sum(1 for pod in pods if _waits(pod))
    largest = max((len(msgspec.json.encode(template)) for template in templates), default=0)
    turn = max(1, min(_TURN, _TURN_BYTES // max(largest, 1)))
    return max(min(max(minimum, AHEAD) - waiting, turn), 0)


def _waits(pod: Pod) -> bool:
    ended = pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Succeeded", "Failed")
    return not pod.spec.node_name and not ended


def in_hand(writes: Iterable[Write]) -> float | None:
    """When to look again after these writes: at once where pods are made, as they may be one slice of more."""
    return 0.0 if any(isinstance(write, Create) and write.resource is PODS for write in writes) else None


def in_turns(tasks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Which pod comes after which, as (task, index), of tasks of so many (minimum, replicas): every task's minimum
    first, or a gang would wait for pods that are not made before it; then one of each in turns, so that a task that
    finds no room does not keep the others from theirs.
    """
    for task, (minimum, replicas) in enumerate(tasks):
        yield from ((task, index) for index in range(min(minimum, replicas)))
    for index in range(max((replicas for _, replicas in tasks), default=0)):
        yield from ((task, index) for task, (minimum, replicas) in enumerate(tasks) if minimum <= index < replicas)


def too_large(members: int, needs: Mapping[str, int], place: RoomLimits) -> str:
    """Why a gang of so many pods that need so much could never start, whoever else goes; empty if it could."""
    if members <= AHEAD:
        return ""
    asked = {**needs, resources.PODS: members}
    for name, limit in place.queues:
        if over := _over(needs, limit):
            return f"{members} pods have to start together and need {over} of queue {name}'s capability; {_REMEDY}"
    if place.cluster is not None and (over := _over(asked, {name: place.cluster.get(name, 0) for name in asked})):
        return f"{members} pods have to start together and need {over} of all nodes; {_REMEDY}"
    return ""


_REMEDY = "no pod is made; lower minAvailable, or make room for it"


def _over(needs: Mapping[str, int], limit: Mapping[str, int]) -> str:
    return ", ".join(
        f"{resources.render_amount(name, amount)} {name} where there is {resources.render_amount(name, limit[name])}"
        for name, amount in sorted(needs.items())
        if name in limit and amount > limit[name]
    )


class Capacity:
    """What all nodes have together, followed change by change."""

    def __init__(self, selector: Mapping[str, str]) -> None:
        self._selector = dict(selector)
        self._total: Resource = {}

    def changed(self, before: Node | None, after: Node | None) -> bool:
        """Take a change in; whether it is one of what the nodes have."""
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
