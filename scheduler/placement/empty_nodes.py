"""Decide whether a job could ever run: whether the nodes could hold it if no pod ran on them.

Cordoned nodes and nodes that are not ready count as nodes, because they return. Neighbours, ports, shared cards and
volumes are not considered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from ..model.job import Job
from ..model.nodes import Nodes
from ..model.task import HOLDING, Task, TaskStatus
from ..policy.tiers import Hooks
from ..reasons import Unplaceable
from .engine import Placement
from .free_capacity import MANY, times

PASSING = "node.kubernetes.io/"
"""The prefix of taints that Kubernetes itself puts on a node for as long as its condition lasts."""


MOST_KINDS = 64
"""The most kinds of tasks for which a cycle counts the slots; jobs of further kinds count as if they could run."""


class UncountedWork(Protocol):
    """The part of the counted work that is needed here."""

    def uncounted(self) -> AbstractContextManager[None]: ...


class PolicyView(Protocol):
    """The part of the view of the backlog that is needed here: the fingerprint of the policy."""

    policy: str


class PlacementSession(Protocol):
    """The part of a session that is needed here."""

    placement: Placement
    nodes: Nodes
    hooks: Hooks

    @property
    def work(self) -> UncountedWork: ...

    @property
    def backlog(self) -> PolicyView: ...


class EmptyNodes:
    """The nodes without their pods, for the jobs of one cycle."""

    def __init__(self, session: PlacementSession) -> None:
        self._placement, self._nodes, self._hooks = session.placement, session.nodes, session.hooks
        self._work, self._left = session.work, MOST_KINDS
        self._kept = self._nodes.kept.once(("empty", session.backlog.policy), dict[Hashable, int])
        """Shape → slots on all nodes, as long as no node's object changes."""
        self._slots: dict[Hashable, int] = {}
        """Kind → slots, for tasks whose nodes depend on more than the nodes' objects, such as queues or claims."""
        self._lacks: dict[bytes, tuple[str, int, int]] = {}
        """Shape → the result of `_lack_of`."""

    def why_never(self, job: Job) -> Unplaceable | None:
        """Return why the nodes could not hold the job even if they were empty; None if they could, or without pods."""
        pending, shapes = job.by_status.get(TaskStatus.PENDING, {}), job.waiting_shapes
        lacking = job.min_available - job.ready - job.undemanding
        if lacking <= 0 and job.count(HOLDING):
            return None
        if len(shapes) == 1 and not job.gated and not job.undemanding:  # nearly all jobs
            waiting, firsts = len(pending), [*shapes.values()]
            room = self._slots_of(firsts[0])
        else:
            numbers = Counter(task.shape for task in pending.values() if not task.best_effort)
            rooms = {shape: self._slots_of(task) for shape, task in shapes.items() if shape in numbers}
            waiting, firsts = numbers.total(), [shapes[shape] for shape in rooms if not rooms[shape]]
            firsts = firsts or [shapes[shape] for shape in rooms]
            room = sum(min(count, rooms.get(shape, count)) for shape, count in numbers.items())
        if not waiting or room >= max(min(lacking, waiting), 1):  # nothing is known about pods that do not exist yet
            return None
        task = firsts[0] if len(firsts) == 1 else min(firsts, key=lambda first: first.place_in_job)
        if task.shape not in self._lacks:
            self._lacks[task.shape] = self._lack_of(task)
        return Unplaceable(task.key, waiting, room, max(lacking, 1), *self._lacks[task.shape])

    def _lack_of(self, task: Task) -> tuple[str, int, int]:
        """Return a dimension of which no node has enough for a task, the request, and the largest amount of a node."""
        for dimension, requested in sorted(task.init_request.items()):
            column = self._nodes.dimensions.get(dimension)
            most = 0 if column is None else int(self._nodes.allocatable[:, column].max(initial=0))
            if most < requested:
                return dimension, requested, most
        return "", 0, 0

    def _slots_of(self, task: Task) -> int:
        """Return how many tasks equal to `task` fit onto all nodes that could ever get one."""
        known = self._kept.get(task.shape)
        if known is not None:
            return known
        kind = self._placement.kind(task)
        slots = self._slots if self._hooks.node_scope.functions or task.pod.spec.volumes else self._kept
        if kind not in slots:
            if not self._left:
                return MANY
            self._left -= 1
            if len(slots) >= self._nodes.most_shapes:
                slots.clear()
            with self._work.uncounted(), self._placement.inside(None):
                slots[kind] = self._count(task)
        return slots[kind]

    def _count(self, task: Task) -> int:
        fitting = times(self._nodes, task, self._nodes.allocatable)
        with self._placement.static_aside(task) as mask:
            allowed = mask.copy()
        for row in np.flatnonzero(~allowed & (fitting > 0)):
            allowed[row] = self._may_return(task, int(row))
        return int(fitting[allowed].sum())

    def _may_return(self, task: Task, row: int) -> bool:
        """Whether a node excludes a task only for as long as the node is cordoned or not ready."""
        if task.missing:
            return False
        node = self._nodes.rows[row]
        rule = self._hooks.node_rule(task, node)
        if rule is None:  # the node is not ready, or a field or claim of the pod excludes every node
            return not node.is_ready or bool(task.pod.spec.volumes)
        return rule[0] in ("unschedulable", "volume") or (rule[0] == "taint" and rule[1].startswith(PASSING))
